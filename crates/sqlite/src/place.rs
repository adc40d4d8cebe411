//! Where the file is: its name and those of the files beside it, which files those are now, and who may use them.
//!
//! Nothing here opens the database file: closing it would drop the locks that SQLite holds on it for this process.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bandog_core::format::Format;
use bandog_core::ledger::Limits;
use rustix::fs::Stat;

use crate::filesystem::{self, Sort};
use crate::plain;
use crate::resolve::resolve;

/// Readable and writable by its owner alone.
const PRIVATE: u32 = 0o600;
/// The same for the group.
const SHARED: u32 = 0o660;
/// A directory whose files belong to its group, which may create more.
const SETGID_AND_GROUP_WRITABLE: u32 = 0o2020;

/// The path of a store, followed once to where the file really is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) bell: PathBuf,
    /// The directory of the pipes through which listeners are woken.
    pub(crate) pipes: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) index: PathBuf,
    /// The format that the file is to have, if its user has a wish.
    pub(crate) format: Option<Format>,
    /// What the store allows, for a file that changes its format.
    pub(crate) limits: Limits,
}

/// Which file a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

impl Place {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let path = resolve(path)?;
        let beside = |ending: &str| {
            let mut name = OsString::from(&path);
            name.push(ending);
            PathBuf::from(name)
        };
        let (bell, log, index) = (beside("-bell"), beside("-wal"), beside("-shm"));
        let pipes = beside("-pipes");
        Ok(Self { path, bell, pipes, log, index, format: None, limits: Limits::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bell(&self) -> &Path {
        &self.bell
    }

    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new("/"))
    }

    /// Refuses links, pipes and whatever else is no regular file in the place of one of the four. SQLite does not follow links from here
    /// either, but it would hand the files beside a database to its owner when root opens it.
    pub(crate) fn check(&self) -> io::Result<()> {
        plain::check(&self.path, plain::ELSEWHERE)?;
        [&self.bell, &self.log, &self.index].into_iter().try_for_each(|path| plain::check(path, plain::REMOVE))
    }

    /// Whether there is a log beside the file.
    pub(crate) fn has_log(&self) -> bool {
        self.log.symlink_metadata().is_ok()
    }

    /// Whether there is a bell, which nobody else has beside a file.
    pub(crate) fn has_bell(&self) -> bool {
        self.bell.symlink_metadata().is_ok()
    }

    /// That of the database; that of a new one follows from its directory.
    pub(crate) fn mode(&self) -> io::Result<u32> {
        if let Ok(database) = self.path.metadata() {
            return Ok(database.mode() & 0o666);
        }
        let directory = self.directory().metadata()?.mode();
        let shared = directory & SETGID_AND_GROUP_WRITABLE == SETGID_AND_GROUP_WRITABLE;
        Ok(if shared { SHARED } else { PRIVATE })
    }

    /// The name and sort of the file system, if it is a known one: of the file, or of the directory where it would be made.
    pub(crate) fn system(&self) -> Option<(&'static str, Sort)> {
        let found = rustix::fs::statfs(&self.path).or_else(|_| rustix::fs::statfs(self.directory()));
        filesystem::by_number(i128::from(found.ok()?.f_type))
    }

    /// Whether other machines may have the file open too, and the locks of this one's system mean nothing to them.
    pub(crate) fn is_remote(&self) -> bool {
        self.system().is_some_and(|(_, sort)| sort == Sort::Apart)
    }

    /// Whether certainly no other machine has it open.
    pub(crate) fn is_local(&self) -> bool {
        self.system().is_some_and(|(_, sort)| matches!(sort, Sort::Local | Sort::Passing | Sort::Layer))
    }

    /// The database file that the path leads to now.
    pub(crate) fn file(&self) -> io::Result<FileId> {
        identify(&self.path)
    }

    /// The database, its log and the index of the log: a connection is good as long as all three are the ones it opened.
    pub(crate) fn files(&self) -> io::Result<[FileId; 3]> {
        Ok([identify(&self.path)?, identify(&self.log)?, identify(&self.index)?])
    }

    /// The same three, as far as they are there.
    pub(crate) fn census(&self) -> io::Result<[Option<FileId>; 3]> {
        let find = |path: &Path| match identify(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        };
        Ok([find(&self.path)?, find(&self.log)?, find(&self.index)?])
    }
}

pub(crate) fn identify(path: &Path) -> io::Result<FileId> {
    // Not through a link: who comes by the other name has another log.
    Ok(FileId::of(&rustix::fs::lstat(path)?))
}

/// `$XDG_STATE_HOME/bandog/locks.db`, or the same under `~/.local/state`.
pub(crate) fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The specification of these directories has relative paths ignored.
    let directory = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("bandog/locks.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_in_the_state_directory() {
        let with = |state: Option<&'static str>, home: Option<&'static str>| {
            default_path(move |name| if name == "HOME" { home } else { state }.map(OsString::from))
        };
        assert_eq!(with(Some("/state"), Some("/home/ann")), Some("/state/bandog/locks.db".into()));
        assert_eq!(with(None, Some("/home/ann")), Some("/home/ann/.local/state/bandog/locks.db".into()));
        assert_eq!(with(Some("relative"), Some("/home/ann")), Some("/home/ann/.local/state/bandog/locks.db".into()));
        assert_eq!(with(Some(""), None), None);
        assert_eq!(with(None, None), None);
    }
}
