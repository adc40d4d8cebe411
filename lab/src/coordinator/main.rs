//! Plays every scenario with every contender in turn, and writes what it saw as JSON, then as a report.
//!
//! `lab/run` installs the contenders and starts this. The figures of a run are kept or dropped by one rule, fixed
//! here before any was made: what others used of the processors meanwhile. It never looks at a result.

mod args;
mod campaign;
mod contenders;
mod delay;
mod figures;
mod hand_offs;
mod markdown;
mod meter;
mod monitor;
mod plot;
mod process;
mod record;
mod round;
mod scenarios;
mod seen;
mod tables;
mod target;
mod targets;
mod unit;
mod wins;

use std::process::ExitCode;

fn main() -> ExitCode {
    match args::read().and_then(begin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn begin(task: args::Task) -> Result<(), String> {
    let record = if task.from.is_empty() { campaign::run(&task)? } else { record::read_all(&task.from)? };
    if let Some(folder) = &task.report {
        markdown::write(folder, &record)?;
    }
    Ok(())
}
