//! Starting and telling puppets, and looking at the lock they are at.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bandog::LockInfo;

use crate::args::{Break, Duty, Role, Style};
use crate::clock::{length, nanos};
use crate::crew::{Worker, is_over, wrong};
use crate::stage::Stage;

/// What a hold was told of: its token, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) token: u64,
    pub(super) at: u64,
}

/// How puppets are started.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) style: Style,
    pub(super) lease: Duration,
    pub(super) window: Option<Duration>,
    pub(super) resource: Option<PathBuf>,
    pub(super) fenced: bool,
    pub(super) broken: Option<Break>,
}

impl Terms {
    pub(super) fn new(style: Style, lease: Duration) -> Self {
        Self { style, lease, window: None, resource: None, fenced: true, broken: None }
    }
}

pub(super) fn duty(stage: &Stage, role: Role, terms: Terms) -> Duty {
    let Terms { style, lease, window, resource, fenced, broken } = terms;
    let url = stage.server.url();
    Duty { role, style, url, lease, window, resource, fenced, number: 0, hands: 1, locks: 1, rounds: 0, broken }
}

/// A puppet that is connected.
pub(super) fn puppet(stage: &Stage, terms: Terms) -> io::Result<Worker> {
    let mut worker = Worker::start(&duty(stage, Role::Puppet, terms))?;
    worker.expect("ready")?;
    Ok(worker)
}

impl Worker {
    pub(super) fn take(&mut self, name: &str) -> io::Result<()> {
        self.tell(&format!("take {name}"))
    }

    pub(super) fn held(&mut self) -> io::Result<Held> {
        match self.expect("held")?[..] {
            [token, at] => Ok(Held { token, at }),
            _ => Err(wrong("a hold without its token and time")),
        }
    }

    /// Releases; the time just before.
    pub(super) fn give(&mut self) -> io::Result<u64> {
        self.tell("give")?;
        self.expect("gave")?.first().copied().ok_or_else(|| wrong("a release without its time"))
    }

    /// Whether the answer to a question was yes.
    pub(super) fn said_yes(&mut self, word: &str) -> io::Result<bool> {
        Ok(self.expect(word)? == [1])
    }
}

/// The lock as the store shows it.
pub(super) fn look(stage: &Stage, name: &str) -> io::Result<Option<LockInfo>> {
    stage.locks.inspect(name).map_err(|error| wrong(error.to_string()))
}

/// When the present lease ends by the store, on our clock, at the earliest.
pub(super) fn lease_end(stage: &Stage, name: &str) -> io::Result<u64> {
    let before = nanos();
    let holder = look(stage, name)?.and_then(|info| info.record.holders.into_iter().next());
    Ok(before + holder.map_or(0, |holder| length(holder.remaining)))
}

/// Waits until so many stand in the queue.
pub(super) fn until_queued(stage: &Stage, name: &str, waiters: usize) -> io::Result<()> {
    while look(stage, name)?.map_or(0, |info| info.record.queue) < waiters {
        if is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    Ok(())
}
