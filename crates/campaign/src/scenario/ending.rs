//! The last bars of scenarios that end with free locks: nobody holds or waits, and after retention no key is left.

use std::io;
use std::time::Duration;

use crate::args::Style;
use crate::clock::{length, nanos};
use crate::crew::{is_over, wrong};
use crate::report::Report;
use crate::stage::Stage;

use super::puppets::{Terms, puppet};

/// How long a tombstone stays: the default of every store.
const RETENTION: Duration = Duration::from_secs(10);
/// The default response timeout: until then a copy of a claim whose holder or waiter died may arrive, and must find it done.
const NOT_AFTER: Duration = Duration::from_secs(2);

pub(super) fn nothing_left(stage: &Stage, report: &mut Report) -> io::Result<()> {
    if stage.broken {
        forget_one(stage)?;
    }
    let left = stage.locks.list("*").map_err(|error| wrong(error.to_string()))?;
    report.none("locks with a holder or a waiter at the end", left.len());
    let until = nanos() + length(RETENTION + NOT_AFTER + stage.slack);
    while keys(stage) > 0 && nanos() < until && !is_over() {
        std::thread::sleep(Duration::from_millis(50));
    }
    report.none("keys left after retention", keys(stage));
    Ok(())
}

fn keys(stage: &Stage) -> usize {
    // Redis counts keys whose time is over until it comes across them; asked for their names, it looks at each.
    let _: Vec<String> = stage.server.run("KEYS *");
    stage.server.size()
}

/// Leaves a lock behind, held by nobody who lives: what these bars must notice.
fn forget_one(stage: &Stage) -> io::Result<()> {
    let mut worker = puppet(stage, Terms::new(Style::Blocking, Duration::from_secs(60)))?;
    worker.take("forgotten")?;
    worker.held()?;
    worker.kill()
}
