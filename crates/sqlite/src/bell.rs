//! The bell: a file beside the database. Closing it after writing rings; inotify hears that. What is written says for whom: every inbox
//! has a place in the file, shared with few others, and a ring leaves a new mark there. Who finds its mark as it was goes back to sleep.
//!
//! The log would be the wrong file to watch: it is written before what is written can be seen, and at every renewal. The bell is rung
//! after the commit, and only when somebody in another process is to be told something new.

use std::fs::File;
use std::io::{self, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use bandog_core::holder::InboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::busy;
use crate::place::Place;
use crate::plain;

/// Places for marks: a page full.
const PLACES: u64 = 512;
/// Where the marks end.
pub(crate) const END: u64 = PLACES * 8;

/// What the last ring left at an inbox's place.
pub(crate) type Mark = [u8; 8];

/// Rings for these. It may fail, as news may be lost: heartbeats tell the same.
pub(crate) fn ring(place: &Place, inboxes: &[InboxId]) {
    let Ok(bell) = place.open_bell() else { return };
    let now = busy::monotonic();
    // Not the number of a push: in a file that was made anew they begin again, and a mark must differ from the one before.
    let mark: Mark = (now.as_secs() << 30 | u64::from(now.subsec_nanos())).to_le_bytes();
    for inbox in inboxes {
        drop(bell.write_all_at(&mark, place_of(*inbox)));
    }
}

fn place_of(inbox: InboxId) -> u64 {
    inbox.to_bits() % PLACES * 8
}

/// What a listener heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Ring,
    /// The bell was removed or changed hands: it has to be found again.
    Gone,
    /// Nothing in this time.
    Silence,
    /// Somebody calls the listener, or nobody needs it any more.
    Call,
}

/// An open ear at the bell.
#[derive(Debug)]
pub(crate) struct Ear {
    inotify: OwnedFd,
    bell: File,
}

impl Ear {
    /// Listens from now on. Fails where the system has no more watches to give, and where there is no database: the bell is made with it.
    pub(crate) fn open(place: &Place) -> io::Result<Self> {
        place.file()?;
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        place.create_bell()?;
        let moved = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        inotify::add_watch(&inotify, place.bell(), WatchFlags::CLOSE_WRITE | WatchFlags::DONT_FOLLOW | moved)?;
        // After the watch: should the bell be another by now, that is heard.
        let bell = plain::open(place.bell(), OFlags::RDONLY)?;
        Ok(Self { inotify, bell })
    }

    /// The mark of an inbox.
    pub(crate) fn mark(&self, inbox: InboxId) -> Mark {
        let mut mark = Mark::default();
        // A bell that was never rung is empty.
        let _ = self.bell.read_at(&mut mark, place_of(inbox));
        mark
    }

    /// Sleeps until the bell is rung, or so long.
    pub(crate) fn wait(&self, line: &PipeReader, length: Duration) -> Heard {
        match sleep(line, Some(self), length) {
            Heard::Ring => self.read(),
            other => other,
        }
    }

    // Takes all there is: ten rings need one look.
    fn read(&self) -> Heard {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut heard = Heard::Silence;
        while let Ok(event) = events.next() {
            heard = match event.events() {
                rung if rung == ReadFlags::CLOSE_WRITE && heard != Heard::Gone => Heard::Ring,
                _ => Heard::Gone,
            };
        }
        heard
    }
}

/// Sleeps until the ear, if there is one, hears something, or somebody calls, or the time is over.
pub(crate) fn sleep(line: &PipeReader, ear: Option<&Ear>, length: Duration) -> Heard {
    let mut fds = vec![PollFd::new(line, PollFlags::IN)];
    fds.extend(ear.map(|ear| PollFd::from_borrowed_fd(ear.inotify.as_fd(), PollFlags::IN)));
    let length = Timespec::try_from(length).ok();
    // An error here is an interruption: an early look does no harm.
    let _ = poll(&mut fds, length.as_ref());
    let ready = |nth: usize| fds.get(nth).is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty());
    match (ready(0), ready(1)) {
        (true, _) => Heard::Call,
        (false, true) => Heard::Ring,
        (false, false) => Heard::Silence,
    }
}
