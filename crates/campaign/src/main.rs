//! `cargo campaign`: real processes against a real redis-server, and whether each bar was kept.
//!
//! The binary starts itself again as its workers. A scenario starts a server and workers, does to them what it is about
//! (kill, stop, deafen), hears from them what they saw, and gives a report of bars. Nothing is retried and nothing is
//! dropped: what was slow is in the report, beside how long the machine itself stood still.

mod args;
mod clock;
mod crew;
mod meter;
mod report;
mod resource;
mod scenario;
mod stage;
mod witness;
mod worker;

use std::process::ExitCode;
use std::{io, panic};

use args::{Args, Command, Orders};
use clap::Parser;
use report::Report;
use scenario::Scenario;

/// As a shell tells of a program that was interrupted.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Worker(duty) => worker::main(&duty),
        Command::Bandog { broken, args } => worker::bandog(broken, args),
        Command::All(orders) => campaign(Scenario::ALL, &orders),
        Command::One(scenario) => {
            let (scenario, orders) = scenario.parts();
            campaign(&[scenario], &orders)
        }
    }
}

fn campaign(scenarios: &[Scenario], orders: &Orders) -> ExitCode {
    if !bandog_rig::is_installed() {
        eprintln!("no redis-server here; install it, or name another with BANDOG_REDIS_SERVER");
        return ExitCode::FAILURE;
    }
    crew::end_on_signals();
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !crew::is_over() {
            hook(info);
        }
    }));
    let mut passed = true;
    for scenario in scenarios {
        match play(*scenario, orders) {
            Ok(report) => {
                tell(&report, orders.json);
                passed &= report.passed();
            }
            Err(_) if crew::is_over() => {
                eprintln!("{scenario}: interrupted; servers and workers are ended");
                return ExitCode::from(INTERRUPTED);
            }
            Err(error) => {
                eprintln!("{scenario}: {error}");
                passed = false;
            }
        }
    }
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A rig whose server is gone panics; Ctrl-C in a terminal ends the server too.
fn play(scenario: Scenario, orders: &Orders) -> io::Result<Report> {
    panic::catch_unwind(|| scenario.play(orders)).unwrap_or_else(|_| Err(crew::wrong("panicked")))
}

fn tell(report: &Report, json: bool) {
    if json { println!("{}", report.json()) } else { println!("{report}") }
}
