//! `kill`: holders die, and each lock is free within its lease.
//!
//! Each lane is a chain on one lock: a holder is killed at any time of its renewal period, the next process gets the lock, and
//! is the next to be killed. Half of the heirs wait already when the holder dies, the others come later. Nobody releases
//! before the end, so whatever the dead leave behind would pile up.

use std::io;
use std::time::Duration;

use crate::args::{Break, Orders, Style};
use crate::clock::{below, length, nanos, pause};
use crate::report::{Report, milliseconds, span};
use crate::stage::Stage;

use super::ending::nothing_left;
use super::puppets::{Terms, lease_end, puppet};

const LEASES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(3)];

struct Kill {
    lease: u64,
    /// From just before the kill to the next grant.
    took: u64,
    /// From the end of the lease in the store to the next grant.
    late: u64,
    /// When the next was granted.
    at: u64,
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("kill", count, orders)?;
    let kills = stage.lanes(orders.lanes.min(count), |lane| chain(&stage, lane))?;
    let mut report = Report::new("kill");
    let worst = kills.iter().map(|kill| kill.took.saturating_sub(kill.lease)).max().unwrap_or(u64::MAX);
    let last = kills.iter().max_by_key(|kill| kill.late);
    let latest = last.map_or(u64::MAX, |kill| kill.late);
    let slack = stage.slack.as_millis();
    let kept = |nanos: u64| nanos <= length(stage.slack);
    let over = |nanos: u64| format!("{:.1} ms over at worst", milliseconds(nanos));
    report.bar("free within the lease, counted from the kill", format!("+ {slack} ms"), over(worst), kept(worst));
    report.bar("free at the lease's end in the store", format!("+ {slack} ms"), over(latest), kept(latest));
    nothing_left(&stage, &mut report)?;
    report.figure("holders killed", kills.len());
    if let Some(Kill { at, took, .. }) = last {
        report.figure("in the latest case the machine stood still for", span(stage.witness.during(at - took, *at)));
    }
    report.spread("grant after the lease's end in the store", kills.iter().map(|kill| kill.late));
    for (lease, name) in LEASES.iter().zip(["free after the kill, lease 1 s", "lease 2 s", "lease 3 s"]) {
        let of_lease = kills.iter().filter(|kill| kill.lease == length(*lease));
        report.spread(name, of_lease.map(|kill| kill.took));
    }
    stage.finish(report)
}

fn chain(stage: &Stage, lane: usize) -> io::Result<Vec<Kill>> {
    let (name, lease) = (format!("kill-{lane}"), LEASES[lane % LEASES.len()]);
    let broken = stage.broken.then_some(Break::Late);
    let heir = |n: usize| puppet(stage, Terms { broken, ..Terms::new(Style::nth(lane + n), lease) });
    let (mut holder, mut kills) = (heir(0)?, Vec::new());
    holder.take(&name)?;
    holder.held()?;
    while stage.turn() {
        let (mut next, early) = (heir(kills.len() + 1)?, below(2) == 0);
        if early {
            next.take(&name)?;
        }
        pause(lease / 2);
        let killed = nanos();
        holder.kill()?;
        let mut end = lease_end(stage, &name)?;
        if !early {
            pause(lease / 4);
            // Right after a hand-off the lease is only a claim window: it may be over before this one asks.
            end = end.max(nanos());
            next.take(&name)?;
        }
        let at = next.held()?.at;
        kills.push(Kill { lease: length(lease), took: at - killed, late: at.saturating_sub(end), at });
        holder = next;
    }
    holder.give()?;
    holder.end()?;
    Ok(kills)
}
