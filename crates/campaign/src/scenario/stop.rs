//! `stop`: holders are stopped past their lease, another takes over and writes, and they go on.
//!
//! The stopped one is told to look and to write while it is stopped, in either order, so that this is the first thing it does when
//! it goes on. The look must say lost, and the write must be refused.

use std::io;
use std::time::Duration;

use bandog_rig::Server;

use crate::args::{Break, Orders, Style};
use crate::clock::{below, nanos, pause};
use crate::crew::{Worker, wrong};
use crate::report::Report;
use crate::resource::Resource;
use crate::stage::Stage;

use super::ending::nothing_left;
use super::puppets::{Terms, puppet};

const LEASES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

struct Pause {
    /// From the stop to the grant of the next.
    took: u64,
    looked_held: bool,
    stale_accepted: bool,
}

pub(super) fn play(count: usize, orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("stop", count, orders)?;
    let resource = Server::start();
    let lanes = orders.lanes.min(count);
    let pauses = stage.lanes(lanes, |lane| rounds(&stage, &resource, lane))?;
    let mut report = Report::new("stop");
    let count = |is: fn(&Pause) -> bool| pauses.iter().filter(|pause| is(pause)).count();
    report.none("stale writes accepted, as their writers were told", count(|pause| pause.stale_accepted));
    report.none("stale writes accepted, as the resource noted", stale(&resource, lanes)?);
    report.none("guards that said held at the first look", count(|pause| pause.looked_held));
    nothing_left(&stage, &mut report)?;
    report.figure("holders stopped", pauses.len());
    report.spread("the next is granted after the stop", pauses.iter().map(|pause| pause.took));
    stage.finish(report)
}

/// What the resource itself noted: accepted writes with a lower token than one before.
fn stale(resource: &Server, lanes: usize) -> io::Result<usize> {
    let (mut resource, mut stale) = (Resource::open(&resource.socket(), true)?, 0);
    for lane in 0..lanes {
        let mut highest = 0;
        for decision in resource.decisions(&format!("stop-{lane}"))?.iter().filter(|decision| decision.accepted) {
            stale += usize::from(decision.token < highest);
            highest = highest.max(decision.token);
        }
    }
    Ok(stale)
}

fn rounds(stage: &Stage, resource: &Server, lane: usize) -> io::Result<Vec<Pause>> {
    let (name, lease) = (format!("stop-{lane}"), LEASES[lane % LEASES.len()]);
    let start = |n: usize| {
        let (resource, broken) = (Some(resource.socket()), stage.broken.then_some(Break::Blind));
        let terms = Terms::new(Style::nth(lane / 2 + n), lease);
        puppet(stage, Terms { resource, broken, fenced: !stage.broken, ..terms })
    };
    let (mut holder, mut next, mut pauses) = (start(0)?, start(1)?, Vec::new());
    while stage.turn() {
        pauses.push(round(&name, lease, &mut holder, &mut next, pauses.len() as u64)?);
        std::mem::swap(&mut holder, &mut next);
    }
    holder.end()?;
    next.end()?;
    Ok(pauses)
}

fn round(name: &str, lease: Duration, holder: &mut Worker, next: &mut Worker, number: u64) -> io::Result<Pause> {
    holder.take(name)?;
    let first = holder.held()?;
    let early = below(2) == 0;
    if early {
        next.take(name)?;
    }
    pause(lease / 2);
    let stopped = nanos();
    holder.stop()?;
    if !early {
        next.take(name)?;
    }
    let second = next.held()?;
    let write = |writer: &mut Worker, add: u64| writer.tell(&format!("write {name} {add}"));
    write(next, 2 * number)?;
    if !next.said_yes("wrote")? || second.token <= first.token {
        return Err(wrong(format!("{second:?} after {first:?}: its write was refused, or its token did not grow")));
    }
    let (stale_accepted, looked_held) = if below(2) == 0 {
        holder.tell("look")?;
        write(holder, 2 * number + 1)?;
        holder.go_on()?;
        let looked = holder.said_yes("looked")?;
        (holder.said_yes("wrote")?, looked)
    } else {
        write(holder, 2 * number + 1)?;
        holder.tell("look")?;
        holder.go_on()?;
        let accepted = holder.said_yes("wrote")?;
        (accepted, holder.said_yes("looked")?)
    };
    next.give()?;
    Ok(Pause { took: second.at - stopped, looked_held, stale_accepted })
}
