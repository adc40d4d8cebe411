//! Where the file is, and how it comes to be: directories, modes, and the files beside it.
//!
//! Nothing here opens the database file once it exists: closing it would drop the locks that SQLite holds on it for this process.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Readable and writable by its owner alone.
const PRIVATE: u32 = 0o600;
/// The same for the group.
const SHARED: u32 = 0o660;
/// A directory whose files belong to its group, which may create more.
const SETGID_AND_GROUP_WRITABLE: u32 = 0o2020;

/// The path of a store, made absolute once.
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

impl Place {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
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

    /// Makes directories, file and bell where they are missing.
    pub(crate) fn create(&self) -> io::Result<()> {
        if !self.directory().exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(self.directory())?;
        }
        self.touch(&self.path)?;
        self.touch(&self.bell)
    }

    fn touch(&self, file: &Path) -> io::Result<()> {
        if file.symlink_metadata().is_ok() {
            return Ok(());
        }
        let mode = self.mode()?;
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(file) {
            // The umask may have taken from the mode.
            Ok(file) => file.set_permissions(Permissions::from_mode(mode)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens the bell for writing, which is all that ringing takes; makes it again if it was removed.
    pub(crate) fn open_bell(&self) -> io::Result<File> {
        let open = || OpenOptions::new().write(true).open(&self.bell);
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.touch(&self.bell)?;
                open()
            }
            opened => opened,
        }
    }

    fn mode(&self) -> io::Result<u32> {
        let directory = self.directory().metadata()?.mode();
        let shared = directory & SETGID_AND_GROUP_WRITABLE == SETGID_AND_GROUP_WRITABLE;
        Ok(if shared { SHARED } else { PRIVATE })
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

fn identify(path: &Path) -> io::Result<FileId> {
    let stat = rustix::fs::stat(path)?;
    Ok(FileId { device: stat.st_dev, inode: stat.st_ino })
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
