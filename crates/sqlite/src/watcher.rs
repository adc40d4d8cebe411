//! The thread that hears of news from other processes and brings it to the inboxes of this one. Started at the first `listen`, ended with
//! the last handle.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bandog_core::store::{Outcome, Push, StoreError};
use bandog_core::time::RunId;

use crate::bell::{self, Ear, Heard};
use crate::error;
use crate::inboxes::Inboxes;
use crate::link::Link;
use crate::place::{FileId, Place};
use crate::rows::{self, Written};
use crate::schema;
use crate::state::State;
use crate::store::{Shared, Waking};

/// Between looks that no ring asks for: repeated notices do not ring, and whoever is killed after a commit has not rung. Who waits
/// asks more often, by heartbeats; and a thousand processes that look cost as much as they do.
const ROUND: Duration = Duration::from_secs(5);
/// Between looks where there is no bell to hear.
const POLL: Duration = Duration::from_millis(10);
/// Looks before it is worth an ear: a process that only takes a free lock and ends should make no files. One that waits gets its ear at
/// once.
const LOOKS_WITHOUT_EAR: u32 = 100;

/// A running watcher. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    thread: JoinHandle<()>,
    // A byte asks for haste; closing it is the sign to stop.
    line: PipeWriter,
    hurried: AtomicBool,
}

impl Watch {
    /// Starts one; whatever is pushed from now on is heard.
    pub(crate) fn start(shared: &Shared) -> Result<Self, StoreError> {
        let place = Arc::clone(&shared.place);
        let failed = |error| error::no_thread(&shared.place, error);
        let link = Link::open(&place)?;
        let seen =
            State::load(&link.connection).map_err(|error| error::explain(&place, Outcome::NotExecuted, error))?.pushed;
        let (line, ours) = std::io::pipe().map_err(failed)?;
        let (inboxes, waking) = (Arc::clone(&shared.inboxes), shared.waking);
        let (file, link, version) = (link.file(), Some(link), None);
        let (ear, looks) = (None, LOOKS_WITHOUT_EAR);
        let watcher = Watcher { place, inboxes, waking, ear, looks, link, seen, file, version, line };
        let thread = std::thread::Builder::new().name("bandog-watcher".to_owned());
        let thread = thread.spawn(move || watcher.run()).map_err(failed)?;
        Ok(Self { thread, line: ours, hurried: AtomicBool::new(false) })
    }

    /// Somebody here waits for news: from now on it is to be heard at once.
    pub(crate) fn hurry(&self) {
        if !self.hurried.swap(true, Ordering::AcqRel) {
            self.call();
        }
    }

    /// Another inbox is here to be heard for.
    pub(crate) fn hear_another(&self) {
        if self.hurried.load(Ordering::Acquire) {
            self.call();
        }
    }

    fn call(&self) {
        // It fails only when the watcher has ended.
        let _ = (&self.line).write(&[1]);
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }
}

struct Watcher {
    place: Arc<Place>,
    inboxes: Arc<Inboxes>,
    waking: Waking,
    /// Nothing at first, where there are no pipes to be had, and while there is no file.
    ear: Option<Ear>,
    /// How many looks are left before an ear is opened.
    looks: u32,
    link: Option<Link>,
    /// The last push that was looked at, in this file.
    seen: i64,
    file: FileId,
    /// What SQLite calls the state of the file at the last poll.
    version: Option<i64>,
    line: PipeReader,
}

impl Watcher {
    fn run(mut self) {
        loop {
            let heard = match &self.ear {
                Some(ear) => ear.wait(&self.line, ROUND),
                None => self.poll(),
            };
            match heard {
                Heard::Call => match self.line.read(&mut [0; 8]) {
                    Ok(1..) => self.prick_up(),
                    _ => return,
                },
                Heard::Silence if self.ear.is_none() => {}
                Heard::Silence => self.prick_up(),
                Heard::Ring => self.look(),
            }
        }
    }

    /// Opens the ear, if it is not for all of us, and then looks: a ring in between is heard.
    fn prick_up(&mut self) {
        if !self.is_found() {
            self.open_ear();
        }
        self.look();
    }

    fn open_ear(&mut self) {
        // Closed before the next is opened, which has the same names.
        self.ear = None;
        if self.waking == Waking::Bell && self.has_pipes() {
            self.ear = Ear::open(&self.place, &self.inboxes.ids()).ok();
            // Asked again: who changes the format rings at every pipe that was there before.
            self.deafen();
        }
    }

    /// Closes the ear where nobody rings at pipes: there it is polled.
    fn deafen(&mut self) {
        if self.ear.is_some() && !self.has_pipes() {
            self.ear = None;
        }
    }

    /// A file of format 2 is shared with builds that know of no pipes.
    fn has_pipes(&self) -> bool {
        self.link.as_ref().is_some_and(|link| schema::is_with_beats(&link.connection).unwrap_or(false))
    }

    /// Whether whoever rings for one of our inboxes finds us.
    fn is_found(&self) -> bool {
        self.ear.as_ref().is_some_and(|ear| ear.is_for(&self.inboxes.ids()))
    }

    fn poll(&mut self) -> Heard {
        match bell::sleep(&self.line, &[], POLL) {
            Heard::Silence => {}
            other => return other,
        }
        self.looks = self.looks.saturating_sub(1);
        if self.looks == 0 {
            // Where there is none to be had, asked for again after as many looks.
            self.looks = LOOKS_WITHOUT_EAR;
            self.open_ear();
        }
        let version = self.link.as_ref().filter(|link| link.is_current()).and_then(|link| {
            let mut pragma = link.connection.prepare_cached("PRAGMA data_version").ok()?;
            pragma.query_row([], |row| row.get(0)).ok()
        });
        let same = version.is_some() && version == self.version;
        self.version = version;
        if same { Heard::Silence } else { Heard::Ring }
    }

    /// Delivers what was written since the last look.
    fn look(&mut self) {
        let reopened = match &self.link {
            Some(link) if link.is_current() => false,
            _ => self.reopen(),
        };
        let found = self.read();
        if found.is_none() {
            self.link = None;
        }
        self.deafen();
        let (run, news) = found.unwrap_or_default();
        for (inbox, name, news) in news {
            self.inboxes.deliver(inbox, Push { name, run, news });
        }
        if reopened {
            self.inboxes.reconnected();
        }
    }

    // In no transaction: what has a number is not changed any more.
    fn read(&mut self) -> Option<(RunId, Vec<Written>)> {
        let connection = &self.link.as_ref()?.connection;
        let State { run, pushed, .. } = State::load(connection).ok()?;
        if pushed == self.seen {
            return Some((run, Vec::new()));
        }
        let news = self.inboxes.ids().into_iter().map(|inbox| rows::news(connection, self.seen, pushed, inbox));
        let news = news.collect::<rusqlite::Result<Vec<_>>>().ok()?.concat();
        self.seen = pushed;
        Some((run, news))
    }

    // A watcher makes no file: whoever has something to write does.
    fn reopen(&mut self) -> bool {
        // Closed before the next is opened.
        self.link = None;
        let Ok(link) = Link::find(&self.place) else { return false };
        let pushed = State::load(&link.connection).map_or(0, |state| state.pushed);
        // In another file everything is new; in the same one, should it have lost its log, ids have gone back.
        self.seen = if self.file == link.file() { self.seen.min(pushed) } else { 0 };
        self.file = link.file();
        self.link = Some(link);
        if self.ear.is_none() {
            self.open_ear();
        }
        true
    }
}
