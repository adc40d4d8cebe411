//! Opening what others may have put where our files belong: a regular file with one name, and nothing else.
//!
//! Who may write to the directory may replace the bell by a link to a file of somebody else's, which the next ring would write to, or by a
//! pipe, whose opening would never end.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

/// Something that is no regular file, where one belongs.
#[derive(Debug)]
pub(crate) struct Odd {
    path: PathBuf,
    what: &'static str,
    advice: &'static str,
}

/// For what was given to us as the path of a database.
pub(crate) const ELSEWHERE: &str = "give bandog another path";
/// For what is beside a database, under a name that is ours.
pub(crate) const REMOVE: &str = "remove that, or give bandog another path";

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what, advice } = self;
        write!(f, "{} {what}; {advice}", path.display())
    }
}

impl Error for Odd {}

impl Odd {
    pub(crate) fn error(path: &Path, what: &'static str, advice: &'static str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, Self { path: path.to_owned(), what, advice })
    }

    /// Finds it in an error of the system's.
    pub(crate) fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// Opens a file of ours beside the database, if it is there, without following a link and without waiting for anybody.
pub(crate) fn open(path: &Path, how: OFlags) -> io::Result<File> {
    let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, how | always, Mode::empty()) {
        Ok(file) => {
            vet(path, &rustix::fs::fstat(&file)?, REMOVE)?;
            Ok(File::from(file))
        }
        Err(error) => {
            // What it is says more than how the opening failed.
            check(path, REMOVE)?;
            Err(error.into())
        }
    }
}

/// Refuses what is there and is no regular file. What is missing or out of reach is left to whoever opens it.
pub(crate) fn check(path: &Path, advice: &'static str) -> io::Result<()> {
    rustix::fs::lstat(path).map_or(Ok(()), |stat| vet(path, &stat, advice))
}

fn vet(path: &Path, stat: &Stat, advice: &'static str) -> io::Result<()> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink <= 1 => return Ok(()),
        // Another way to reach a file of somebody else's; and of a database, to have two logs for it.
        FileType::RegularFile => "has a second name (a hard link)",
        FileType::Symlink => "is a symbolic link, not a file",
        FileType::Directory => "is a directory, not a file",
        FileType::Fifo => "is a pipe, not a file",
        FileType::Socket => "is a socket, not a file",
        _ => "is a device, not a file",
    };
    Err(Odd::error(path, what, advice))
}
