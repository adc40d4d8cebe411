//! Where the file is, and how it comes to be: directories, modes, and the files beside it.
//!
//! Nothing here opens the database file once it exists: closing it would drop the locks that SQLite holds on it for this process.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Gid, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::busy;
use crate::plain;
use crate::resolve::resolve;

/// Readable and writable by its owner alone.
const PRIVATE: u32 = 0o600;
/// The same for the group.
const SHARED: u32 = 0o660;
/// A directory whose files belong to its group, which may create more.
const SETGID_AND_GROUP_WRITABLE: u32 = 0o2020;
/// For the files of others to be made or removed, which takes milliseconds.
const ALONE_WITHIN: Duration = Duration::from_secs(5);

/// The path of a store, followed once to where the file really is.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    bell: PathBuf,
    log: PathBuf,
    index: PathBuf,
}

/// Which file a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(stat: &Stat) -> Self {
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
        Ok(Self { path, bell, log, index })
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
        [&self.path, &self.bell, &self.log, &self.index].into_iter().try_for_each(|path| plain::check(path))
    }

    /// Makes file, directories and bell if there is no file. Beside one that is there nothing is made before it is known to be ours.
    pub(crate) fn create(&self) -> io::Result<()> {
        if self.path.symlink_metadata().is_ok() {
            return Ok(());
        }
        if !self.directory().exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(self.directory())?;
        }
        let _alone = self.lock_bell()?;
        if self.path.symlink_metadata().is_err() {
            // A log that is left over belongs to a file that is gone, and whoever still has that open writes to it.
            remove(&self.log)?;
            remove(&self.index)?;
            make(&self.path, self.mode()?)?;
        }
        Ok(())
    }

    /// Removes a file that has lost its log, with what is left beside it: half of it is worse than nothing, and all who have it open
    /// find out. Does nothing when the path leads elsewhere by now.
    pub(crate) fn give_up(&self, file: FileId) -> io::Result<()> {
        let _alone = self.lock_bell()?;
        if self.file().is_ok_and(|found| found == file) {
            remove(&self.path)?;
            remove(&self.log)?;
            remove(&self.index)?;
        }
        Ok(())
    }

    /// Whether there is a log beside the file.
    pub(crate) fn has_log(&self) -> bool {
        self.log.symlink_metadata().is_ok()
    }

    /// Whether there is a bell, which nobody else has beside a file.
    pub(crate) fn has_bell(&self) -> bool {
        self.bell.symlink_metadata().is_ok()
    }

    /// Makes the bell if it is missing: for whom the database is, the bell is too, whoever makes it.
    pub(crate) fn create_bell(&self) -> io::Result<()> {
        if self.has_bell() {
            return Ok(());
        }
        let made = make(&self.bell, self.mode()?)?;
        if let (Some(bell), Ok(database), true) =
            (made, self.path.symlink_metadata(), rustix::process::geteuid().is_root())
        {
            let (owner, group) = (Uid::from_raw(database.uid()), Gid::from_raw(database.gid()));
            rustix::fs::fchown(&bell, Some(owner), Some(group))?;
        }
        Ok(())
    }

    /// Keeps other processes from making or removing files until the handle is dropped.
    fn lock_bell(&self) -> io::Result<File> {
        let give_up = busy::monotonic() + ALONE_WITHIN;
        loop {
            self.create_bell()?;
            // For reading: closing it rings for nobody.
            let bell = plain::open(&self.bell, OFlags::RDONLY)?;
            let locked = rustix::fs::flock(&bell, FlockOperation::NonBlockingLockExclusive);
            let stat = rustix::fs::fstat(&bell)?;
            match locked {
                Ok(()) if identify(&self.bell).is_ok_and(|found| found == FileId::of(&stat)) => return Ok(bell),
                // It was replaced meanwhile: that one is to be locked.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.into()),
            }
            if busy::monotonic() >= give_up {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
        }
    }

    /// That of the database; that of a new one follows from its directory.
    fn mode(&self) -> io::Result<u32> {
        if let Ok(database) = self.path.metadata() {
            return Ok(database.mode() & 0o666);
        }
        let directory = self.directory().metadata()?.mode();
        let shared = directory & SETGID_AND_GROUP_WRITABLE == SETGID_AND_GROUP_WRITABLE;
        Ok(if shared { SHARED } else { PRIVATE })
    }

    /// Opens the bell for writing, which is all that ringing takes; makes it again if it was removed.
    pub(crate) fn open_bell(&self) -> io::Result<File> {
        let open = || plain::open(&self.bell, OFlags::WRONLY);
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_bell()?;
                open()
            }
            opened => opened,
        }
    }

    /// Whether other machines may have the file open too, and the locks of this one's system mean nothing to them.
    pub(crate) fn is_remote(&self) -> bool {
        rustix::fs::statfs(&self.path).is_ok_and(|system| is_network(i128::from(system.f_type)))
    }

    /// The database file that the path leads to now.
    pub(crate) fn file(&self) -> io::Result<FileId> {
        identify(&self.path)
    }

    /// The database, its log and the index of the log: a connection is good as long as all three are the ones it opened.
    pub(crate) fn files(&self) -> io::Result<[FileId; 3]> {
        Ok([identify(&self.path)?, identify(&self.log)?, identify(&self.index)?])
    }
}

/// NFS, SMB in three generations, Ceph.
fn is_network(kind: i128) -> bool {
    [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400].contains(&(kind & 0xffff_ffff))
}

/// Makes a file, unless somebody else just did.
fn make(path: &Path, mode: u32) -> io::Result<Option<File>> {
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => {
            // The umask may have taken from the mode.
            file.set_permissions(Permissions::from_mode(mode))?;
            Ok(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

fn identify(path: &Path) -> io::Result<FileId> {
    Ok(FileId::of(&rustix::fs::stat(path)?))
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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
