//! Bells: each inbox that listens has a named pipe of its own, in a directory beside the database. A byte in it says that there is news.
//!
//! So a ring wakes whom it is for and nobody else, and needs nothing that the system has few of. A pipe appears under its name when somebody
//! has it open already: one that nobody has open is of a process that has ended, and goes at the next ring or the next look around.
//! Everything here may fail, as news may be lost: heartbeats tell the same, and watchers look by themselves.
//!
//! A file of format 2 is shared with builds that have no pipes. They listen by inotify at the file beside the database: closing it after
//! writing rings, and what is written says for whom. There we ring as they do, and nobody of this build listens: its watchers poll.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self, AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::busy;
use crate::place::{FileId, Place};
use crate::schema::has_beats;

/// Pipes at which a new listener looks whether their process is dead.
const LOOKED_AT: usize = 16;
/// Bytes that a pipe takes: one is enough, and the system counts pages of pipes for each user.
const ROOM: usize = 4096;
/// What is added to the name of a pipe until it is open.
const UNFINISHED: &str = ".new";

/// Places for marks in the file: a page full.
const PLACES: u64 = 512;

/// Rings for these, as those who use a file of this format hear it.
pub(crate) fn ring(place: &Place, format: Format, inboxes: &[InboxId]) {
    if !has_beats(format) {
        return ring_as_before(place, inboxes);
    }
    let Ok(directory) = open_directory(place) else { return };
    for inbox in inboxes {
        ring_one(&directory, &name_of(*inbox));
    }
}

/// Rings for everybody who listens at a pipe.
pub(crate) fn ring_all(place: &Place) {
    let Ok(directory) = open_directory(place) else { return };
    names(&directory).iter().for_each(|name| ring_one(&directory, name));
}

/// Leaves a new mark at the place of each inbox: builds of format 2 compare it with the one before.
fn ring_as_before(place: &Place, inboxes: &[InboxId]) {
    let Ok(bell) = place.open_bell() else { return };
    let now = busy::monotonic();
    let mark = (now.as_secs() << 30 | u64::from(now.subsec_nanos())).to_le_bytes();
    for inbox in inboxes {
        drop(bell.write_all_at(&mark, inbox.to_bits() % PLACES * 8));
    }
}

fn ring_one(directory: &OwnedFd, name: &str) {
    let Some(pipe) = open_living(directory, name) else { return };
    // Held open for reading as well: should its process die now, the write must not end ours by a signal.
    if let Ok(_reader) = open_pipe(directory, name, OFlags::RDONLY) {
        // One that is full has rung.
        let _ = File::from(pipe).write(&[1]);
    }
}

/// Opens a pipe that somebody reads from, for writing; removes one that nobody does.
fn open_living(directory: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let opened = open_pipe(directory, name, OFlags::WRONLY);
    if opened.as_ref().is_err_and(|error| *error == Errno::NXIO) {
        let _ = fs::unlinkat(directory, name, AtFlags::empty());
    }
    opened.ok()
}

/// Without following a link, and without waiting for anybody.
fn open_pipe(directory: &OwnedFd, name: &str, how: OFlags) -> rustix::io::Result<OwnedFd> {
    let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let pipe = fs::openat(directory, name, how | always, Mode::empty())?;
    let kind = FileType::from_raw_mode(fs::fstat(&pipe)?.st_mode);
    if kind == FileType::Fifo { Ok(pipe) } else { Err(Errno::INVAL) }
}

fn open_directory(place: &Place) -> rustix::io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::open(&place.pipes, how, Mode::empty())
}

fn name_of(inbox: InboxId) -> String {
    format!("{:016x}", inbox.to_bits())
}

/// What a listener heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Ring,
    /// Nothing in this time.
    Silence,
    /// Somebody calls the listener, or nobody needs it any more.
    Call,
}

/// Open ears: a pipe for each inbox. They are taken away when it is dropped.
#[derive(Debug)]
pub(crate) struct Ear {
    directory: OwnedFd,
    pipes: Vec<(InboxId, File)>,
}

impl Ear {
    /// Listens for these from now on. Fails where there is no database, or where the file system has no pipes.
    pub(crate) fn open(place: &Place, inboxes: &[InboxId]) -> io::Result<Self> {
        place.file()?;
        make_directory(place)?;
        let directory = open_directory(place)?;
        look_around(&directory);
        let mut ear = Self { directory, pipes: Vec::new() };
        for inbox in inboxes {
            let pipe = make_pipe(&ear.directory, &name_of(*inbox), place)?;
            ear.pipes.push((*inbox, File::from(pipe)));
        }
        Ok(ear)
    }

    /// Whether it listens for these, and everybody can find its pipes.
    pub(crate) fn is_for(&self, inboxes: &[InboxId]) -> bool {
        let heard =
            |inbox: &InboxId| self.pipes.iter().any(|(known, pipe)| known == inbox && self.is_found(*known, pipe));
        self.pipes.len() == inboxes.len() && inboxes.iter().all(heard)
    }

    fn is_found(&self, inbox: InboxId, pipe: &File) -> bool {
        let found = fs::statat(&self.directory, name_of(inbox), AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| fs::fstat(pipe).is_ok_and(|ours| FileId::of(&found) == FileId::of(&ours)))
    }

    /// Sleeps until a bell is rung, or so long.
    pub(crate) fn wait(&self, line: &PipeReader, length: Duration) -> Heard {
        let heard = sleep(line, &self.pipes, length);
        if heard == Heard::Ring {
            self.drain();
        }
        heard
    }

    // Takes all there is: ten rings need one look.
    fn drain(&self) {
        for (_, pipe) in &self.pipes {
            let mut pipe: &File = pipe;
            while matches!(pipe.read(&mut [0; 64]), Ok(1..)) {}
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        for (inbox, _) in &self.pipes {
            let _ = fs::unlinkat(&self.directory, name_of(*inbox), AtFlags::empty());
        }
    }
}

/// Sleeps until one of these pipes has something to read, or somebody calls, or the time is over.
pub(crate) fn sleep(line: &PipeReader, pipes: &[(InboxId, File)], length: Duration) -> Heard {
    let mut fds = vec![PollFd::new(line, PollFlags::IN)];
    fds.extend(pipes.iter().map(|(_, pipe)| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
    let length = Timespec::try_from(length).ok();
    // An error here is an interruption: an early look does no harm.
    let _ = poll(&mut fds, length.as_ref());
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    match (ready.next(), ready.any(|ready| ready)) {
        (Some(true), _) => Heard::Call,
        (_, true) => Heard::Ring,
        _ => Heard::Silence,
    }
}

/// Makes the directory for whom the database is, unless it is there.
fn make_directory(place: &Place) -> io::Result<()> {
    match fs::mkdir(&place.pipes, Mode::RWXU) {
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    let directory = open_directory(place)?;
    let files = place.mode()?;
    // Who may read may also enter; and a group that was inherited is handed on.
    let inherited = fs::fstat(&directory)?.st_mode & Mode::SGID.as_raw_mode();
    fs::fchmod(&directory, Mode::from_raw_mode(files | (files & 0o444) >> 2 | inherited))?;
    give(&directory, place)
}

/// Makes a pipe and opens it; only then it gets its name.
fn make_pipe(directory: &OwnedFd, name: &str, place: &Place) -> io::Result<OwnedFd> {
    let (unfinished, mode) = (format!("{name}{UNFINISHED}"), Mode::from_raw_mode(place.mode()?));
    let _ = fs::unlinkat(directory, &unfinished, AtFlags::empty());
    fs::mknodat(directory, &unfinished, FileType::Fifo, mode, 0)?;
    // For writing too: otherwise it ends with each who has rung.
    let pipe = open_pipe(directory, &unfinished, OFlags::RDWR)?;
    // The umask may have taken from the mode.
    fs::fchmod(&pipe, mode)?;
    give(&pipe, place)?;
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, ROOM);
    fs::renameat(directory, &unfinished, directory, name)?;
    Ok(pipe)
}

/// What root makes is for those whose database it is.
fn give(made: &OwnedFd, place: &Place) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let database = place.path.symlink_metadata()?;
    let (owner, group) = (Uid::from_raw(database.uid()), Gid::from_raw(database.gid()));
    Ok(fs::fchown(made, Some(owner), Some(group))?)
}

/// Removes what processes have left that ended, of some pipes: with every listener of some others.
fn look_around(directory: &OwnedFd) {
    let names = names(directory);
    let from = getrandom::u32().map_or(0, |random| random as usize) % names.len().max(1);
    for name in names.iter().cycle().skip(from).take(LOOKED_AT.min(names.len())) {
        drop(open_living(directory, name));
    }
}

/// What pipes there are.
fn names(directory: &OwnedFd) -> Vec<String> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| is_ours(name)).collect()
}

fn is_ours(name: &str) -> bool {
    let bits = name.strip_suffix(UNFINISHED).unwrap_or(name);
    bits.len() == 16 && u64::from_str_radix(bits, 16).is_ok()
}
