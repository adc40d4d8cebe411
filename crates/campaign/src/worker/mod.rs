//! A worker process: started by a scenario, told on stdin, heard on stdout, one line each way at a time.
//!
//! It ends when its ear is closed, and is killed by the kernel when the thread that started it dies, so that no stopped
//! worker outlives the campaign.

mod beat;
mod client;
mod counts;
mod crowd;
mod delay;
mod ends;
mod hoard;
mod line;
mod loser;
mod observed;
mod places;
mod puppet;
mod waiter;
mod writer;

use std::ffi::OsString;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};

pub(crate) use self::waiter::LOCK;
use crate::args::{Duty, Role};

const WASTE: usize = 64 << 20;
const LATE: Duration = Duration::from_millis(1500);

pub(crate) fn main(duty: &Duty) -> ExitCode {
    let played = set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from).and_then(|()| play(duty));
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("failed {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The command `bandog`, or one that is late and wastes memory.
pub(crate) fn bandog(broken: bool, args: Vec<OsString>) -> ExitCode {
    let mut waste = Vec::new();
    if broken {
        waste.resize(WASTE, 1_u8);
        std::thread::sleep(LATE);
    }
    let code = bandog_cli::main(std::iter::once("bandog".into()).chain(args).collect());
    drop(waste);
    code
}

fn play(duty: &Duty) -> io::Result<()> {
    match duty.role {
        Role::Puppet => puppet::play(duty),
        Role::Writer => writer::play(duty),
        Role::Line => line::play(duty),
        Role::Crowd => crowd::play(duty),
        Role::Loser => loser::play(duty),
        Role::Hoard => hoard::play(duty),
        Role::Waiter => waiter::play(duty),
    }
}

/// Says a line to the coordinator.
fn say(line: Arguments<'_>) {
    // One write per line, so that death does not cut one that was said, and hands do not mix theirs.
    let text = format!("{line}\n");
    let mut mouth = io::stdout().lock();
    // Nobody listens any more once the coordinator is gone, and then the worker ends too.
    drop(mouth.write_all(text.as_bytes()).and_then(|()| mouth.flush()));
}

/// The next line of the coordinator; `None` at the end.
fn listen() -> Option<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}
