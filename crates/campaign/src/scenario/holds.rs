//! `holds`: what 10,000 holds cost at default settings, and that none is lost; then again while every worker of the runtime is
//! blocked for five leases, so that nothing but the renewal thread can keep them.

use std::io;

use crate::args::Orders;
use crate::report::Report;
use crate::stage::Stage;

use super::hoard::{Hoard, LEASE, OFF_BEAT, let_pass};

const HOLDS: u64 = 10_000;
const LEASES: u32 = 5;

pub(super) fn play(orders: &Orders) -> io::Result<Report> {
    let stage = Stage::new("holds", usize::try_from(orders.seconds).unwrap_or(usize::MAX), orders)?;
    let holds = orders.holds.unwrap_or(HOLDS);
    let mut report = Report::new("holds");
    report.figure("holds", holds);
    at_defaults(&stage, orders, holds, &mut report)?;
    blocked(&stage, orders, holds, &mut report)?;
    stage.finish(report)
}

fn at_defaults(stage: &Stage, orders: &Orders, holds: u64, report: &mut Report) -> io::Result<()> {
    let mut hoard = Hoard::start(stage, 1, holds, LEASE)?;
    std::thread::sleep(OFF_BEAT);
    let before = hoard.meter()?;
    if stage.broken {
        hoard.harm();
    }
    let_pass(stage, orders.seconds)?;
    let (after, health) = (hoard.meter()?, hoard.health()?);
    hoard.end()?;
    report.none(format!("holds lost in {} s at default settings", orders.seconds), health.lost);
    health.report_findings(report);
    report.figure("rounds of the watchdog", health.rounds);
    after.report_since(&before, "", report);
    Ok(())
}

fn blocked(stage: &Stage, orders: &Orders, holds: u64, report: &mut Report) -> io::Result<()> {
    let (lease, length) = (orders.lease, orders.lease * LEASES);
    let mut hoard = Hoard::start(stage, 2, holds, lease)?;
    if stage.broken {
        hoard.harm();
    }
    let before = hoard.meter()?;
    hoard.block(length)?;
    let (after, health) = (hoard.meter()?, hoard.health()?);
    hoard.end()?;
    let what = format!("holds lost while the runtime was blocked for {length:?}, with a lease of {lease:?}");
    report.none(what, health.lost);
    report.figure("findings while it was blocked", format!("{:?}", health.findings));
    after.report_since(&before, "blocked: ", report);
    Ok(())
}
