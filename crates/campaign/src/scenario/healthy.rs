//! `healthy`: many holds at default settings, nothing goes wrong, and the watchdog finds nothing.

use std::io;

use crate::args::Orders;
use crate::crew::wrong;
use crate::report::Report;
use crate::stage::Stage;

use super::hoard::{Hoard, LEASE, OFF_BEAT, let_pass};

const HOLDS: u64 = 1_000;

pub(super) fn play(orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("healthy", usize::try_from(orders.seconds).unwrap_or(usize::MAX), orders)?;
    let holds = orders.holds.unwrap_or(HOLDS);
    let mut hoard = Hoard::start(&stage, 0, holds, LEASE)?;
    std::thread::sleep(OFF_BEAT);
    let before = hoard.meter()?;
    // Once the watchdog knows the connections that are to break: before, the next are the first it sees.
    let calm = if stage.broken { orders.seconds / 2 } else { orders.seconds };
    let_pass(&stage, calm)?;
    if stage.broken {
        hoard.harm();
        let_pass(&stage, orders.seconds - calm)?;
    }
    let (after, health) = (hoard.meter()?, hoard.health()?);
    if health.rounds == 0 {
        return Err(wrong("too short: the watchdog went no round"));
    }
    hoard.end()?;
    let mut report = Report::new("healthy");
    health.report_findings(&mut report);
    report.none("holds lost", health.lost);
    report.none("connections opened again", health.reconnects);
    report.figure("holds", holds);
    report.figure("rounds of the watchdog", health.rounds);
    after.report_since(&before, "", &mut report);
    stage.finish(report)
}
