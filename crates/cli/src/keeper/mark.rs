//! A mark on an open file that is gone when its last copy is closed, whoever has it and however it ends.
//!
//! The mark is a lock of fcntl(2) that belongs to the open file (`F_OFD_SETLK`), on one byte far behind the end of any file. The byte is drawn, so
//! nobody else ever asks for it but the keeper, who waits for it: the kernel wakes him when the file is closed. The keeper has a mark of his own on the
//! byte behind it, by which others see that he lives.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use filedescriptor::FileDescriptor;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{OFlags, fcntl_getfl};

use crate::exit::Exit;
use crate::failure::Failure;

/// Bytes that no file has.
const FIRST: i64 = 1 << 61;
/// Between two looks where the kernel cannot be waited for: the file was opened to be read only, and may not be written.
const LOOK: Duration = Duration::from_millis(20);

/// The byte of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(i64);

/// A file that was open when this program was started, by the number that the user gives.
#[derive(Debug)]
pub(crate) struct Descriptor {
    number: i32,
    /// Another number for the same open file.
    copy: FileDescriptor,
}

impl Mark {
    fn draw(shared: bool) -> io::Result<Self> {
        let random = i64::from(getrandom::u32().map_err(io::Error::other)?);
        Ok(Self(FIRST + random * 4 + if shared { 2 } else { 0 }))
    }

    /// From the arguments of a keeper.
    pub(super) fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|byte| *byte >= FIRST).map(Self)
    }

    pub(super) fn text(self) -> String {
        self.0.to_string()
    }

    /// Whether the hold behind it is shared.
    pub(crate) fn is_shared(self) -> bool {
        self.0 & 2 != 0
    }

    fn keepers(self) -> i64 {
        self.0 + 1
    }
}

impl Descriptor {
    pub(crate) fn new(number: i32) -> Result<Self, Failure> {
        let copy = FileDescriptor::dup(&number);
        copy.map(|copy| Self { number, copy })
            .map_err(|_| Failure::new("usage", Exit::Descriptor, format!("{number}: Bad file descriptor")))
    }

    /// The file's path, if it still has the one under which it was opened.
    pub(crate) fn path(&self) -> io::Result<PathBuf> {
        let path = std::fs::read_link(self.link("fd"))?;
        let (here, there) = (std::fs::metadata(self.link("fd"))?, std::fs::metadata(&path));
        match there {
            Ok(there) if (there.dev(), there.ino()) == (here.dev(), here.ino()) => Ok(path),
            _ => Err(io::Error::other(format!("{} is no file that others could lock", path.display()))),
        }
    }

    /// The mark that it has, as the kernel shows it.
    pub(crate) fn mark(&self) -> io::Result<Option<Mark>> {
        let shown = std::fs::read_to_string(self.link("fdinfo"))?;
        Ok(shown.lines().filter(|line| line.starts_with("lock:") && line.contains("OFDLCK")).find_map(|line| {
            let mut ends = line.split_whitespace().rev();
            let (last, first) = (ends.next()?, ends.next()?);
            (first == last).then(|| Mark::read(first)).flatten()
        }))
    }

    /// Marks it.
    pub(crate) fn set(&self, shared: bool) -> io::Result<Mark> {
        let mark = Mark::draw(shared)?;
        set(&self.copy, kind(&self.copy)?, mark.0)?;
        Ok(mark)
    }

    /// Takes the mark away.
    pub(crate) fn clear(&self, mark: Mark) -> io::Result<()> {
        set(&self.copy, libc::F_UNLCK, mark.0)
    }

    /// Takes away whatever mark it has.
    pub(crate) fn unmark(&self) {
        if let Ok(Some(mark)) = self.mark() {
            let _ = self.clear(mark);
        }
    }

    /// What the system says against it.
    pub(crate) fn failed(&self, error: &io::Error) -> Failure {
        Failure::new("usage", Exit::Descriptor, format!("{}: {}", self.number, reason(error)))
    }

    /// Whether the keeper of the mark lives.
    pub(crate) fn is_kept(&self, mark: Mark) -> io::Result<bool> {
        excludes(&self.copy, libc::F_WRLCK, mark.keepers())
    }

    /// The same file, opened once more for its keeper: to be written if this one is only read, so that the two exclude each other.
    pub(crate) fn again(&self) -> io::Result<File> {
        let link = self.link("fd");
        let only_read = (fcntl_getfl(&self.copy)? & OFlags::RWMODE) == OFlags::RDONLY;
        let first = if only_read { OpenOptions::new().write(true).open(&link) } else { File::open(&link) };
        // Whoever may do only one of them has to look again and again.
        first.or_else(|_| File::open(&link)).or_else(|_| OpenOptions::new().write(true).open(&link))
    }

    fn link(&self, table: &str) -> String {
        format!("/proc/self/{table}/{}", self.number)
    }
}

/// The system's words without their number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Closes a file that this process was given under that number.
pub(crate) fn close(number: i32) {
    drop(FileDescriptor::new(number));
}

/// Closes whatever this process was given beside its standard streams: a keeper must not keep the file open itself.
pub(super) fn close_the_rest() -> io::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd")?;
    let numbers: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The folder itself is closed already.
    let is_open = |number: i32| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    numbers
        .into_iter()
        .filter(|number| *number > 2 && is_open(*number))
        .for_each(|number| drop(FileDescriptor::new(number)));
    Ok(())
}

/// Says with this open file that the keeper of the mark lives.
pub(super) fn show_keeper(file: &File, mark: Mark) -> io::Result<()> {
    set(file, kind(file)?, mark.keepers())
}

/// Waits until the mark is gone.
pub(super) fn wait(file: &File, mark: Mark) -> io::Result<()> {
    let ours = kind(file)?;
    while excludes(file, libc::F_WRLCK, mark.0)? {
        if excludes(file, ours, mark.0)? {
            match fcntl(file, FcntlArg::F_OFD_SETLKW(&range(ours, mark.0))) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        } else {
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// The kind of lock that this file may have: one that is only read may not exclude other readers.
fn kind(file: impl AsFd) -> io::Result<i32> {
    let is_read = (fcntl_getfl(file)? & OFlags::RWMODE) == OFlags::RDONLY;
    Ok(if is_read { libc::F_RDLCK } else { libc::F_WRLCK })
}

/// Whether another open file has a lock on the byte that excludes one of this kind.
fn excludes(file: impl AsFd, kind: i32, byte: i64) -> io::Result<bool> {
    let mut found = range(kind, byte);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

fn set(file: impl AsFd, kind: i32, byte: i64) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&range(kind, byte)))?;
    Ok(())
}

fn range(kind: i32, byte: i64) -> libc::flock {
    // The kinds are 0, 1 and 2.
    let kind = libc::c_short::try_from(kind).unwrap_or_default();
    libc::flock { l_type: kind, l_whence: 0, l_start: byte, l_len: 1, l_pid: 0 }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::sync::mpsc;

    use super::*;

    fn marked(open: &OpenOptions, shared: bool) -> (File, Descriptor, Mark, File) {
        let path = std::env::temp_dir().join(format!("bandog-mark-{}-{shared}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let file = open.open(&path).unwrap();
        let descriptor = Descriptor::new(file.as_raw_fd()).unwrap();
        let mark = descriptor.set(shared).unwrap();
        let again = descriptor.again().unwrap();
        assert_eq!(descriptor.path().unwrap(), path.canonicalize().unwrap());
        std::fs::remove_file(&path).unwrap();
        (file, descriptor, mark, again)
    }

    #[test]
    fn a_mark_is_gone_when_the_last_copy_is_closed() {
        let (mut read, mut write) = (OpenOptions::new(), OpenOptions::new());
        for (open, shared) in [(read.read(true), true), (write.write(true), false)] {
            let (file, descriptor, mark, again) = marked(open, shared);
            assert_eq!((descriptor.mark().unwrap(), mark.is_shared()), (Some(mark), shared));
            let copy = file.try_clone().unwrap();
            let (told, ended) = mpsc::channel();
            let waits = thread::spawn(move || {
                wait(&again, mark).unwrap();
                told.send(()).unwrap();
            });
            drop((file, descriptor));
            assert!(ended.try_recv().is_err());
            drop(copy);
            waits.join().unwrap();
            ended.recv().unwrap();
        }
    }

    #[test]
    fn a_mark_that_is_taken_away_is_gone_and_its_keeper_is_seen() {
        let (_file, descriptor, mark, again) = marked(OpenOptions::new().read(true).write(true), false);
        assert!(!descriptor.is_kept(mark).unwrap());
        show_keeper(&again, mark).unwrap();
        assert!(descriptor.is_kept(mark).unwrap());
        descriptor.clear(mark).unwrap();
        assert_eq!(descriptor.mark().unwrap(), None);
        wait(&again, mark).unwrap();
        drop(again);
        assert!(!descriptor.is_kept(mark).unwrap());
    }
}
