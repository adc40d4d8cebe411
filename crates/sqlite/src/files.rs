//! How the files come to be and go: made and removed under a lock on the bell, so that processes that do it at once agree.
//!
//! The database is opened here only to make it: closing one that is in use would drop the locks that SQLite holds on it for this process.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Gid, OFlags, Uid};
use rustix::io::Errno;

use crate::busy;
use crate::place::{FileId, Place, identify};
use crate::plain;
use crate::ties::Ties;

/// For others to make or remove files, which takes milliseconds.
const ALONE_WITHIN: Duration = Duration::from_secs(5);
/// As often is a step tried again when what it needs is removed meanwhile.
const TRIES: u32 = 5;

impl Place {
    /// Makes file, directories and bell if there is no file. Beside one that is there nothing is made before it is known to be ours.
    pub(crate) fn create(&self) -> io::Result<()> {
        again(|| self.try_create())
    }

    fn try_create(&self) -> io::Result<()> {
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
            Ties::default().write(&self.open_bell()?)?;
            make(&self.path, self.mode()?)?;
        }
        Ok(())
    }

    /// Leaves files that are not all in their places any more. `files` are those that the caller still has open.
    ///
    /// If the database is in its place, its log or index is not. It is removed with what is left beside it: somebody may have the old log
    /// open and move it into the database at any time, under whoever has begun a new log. Others may have begun one, and lose it: all who
    /// have the database open find out at their next look, before and after each transaction, and begin the next file together.
    ///
    /// If another database is in its place, a log or index that stayed is not that one's.
    ///
    /// Why this removes no file that it should not: the caller has the files open, so that the numbers that name them are not given to
    /// new ones; and no process makes or removes files between the look and the removal, as all take the lock. People who remove
    /// the bell in that moment break the lock. Then a file that was just made may be lost, which its users find out as above.
    pub(crate) fn leave(&self, files: [FileId; 3]) -> io::Result<()> {
        let _alone = self.lock_bell()?;
        let (open, now) = (files.map(Some), self.census()?);
        // Out of reach for a moment, and back.
        if now == open {
            return Ok(());
        }
        let halved = now[0] == open[0];
        if halved {
            remove(&self.path)?;
        }
        if halved || now[1] == open[1] {
            remove(&self.log)?;
        }
        if halved || now[2] == open[2] {
            remove(&self.index)?;
        }
        Ok(())
    }

    /// Removes a log and an index that another database left behind when this one was moved into its place.
    pub(crate) fn untie(&self) -> io::Result<()> {
        // A bell that cannot be read has nothing to tell, and whoever needs it will say so.
        let Ok(bell) = plain::open(&self.bell, OFlags::RDONLY) else { return Ok(()) };
        if Ties::read(&bell).outlived(&self.ties()) == [false; 2] {
            return Ok(());
        }
        let alone = self.lock_bell()?;
        let [log, index] = Ties::read(&alone).outlived(&self.ties());
        if log {
            remove(&self.log)?;
        }
        if index {
            remove(&self.index)?;
        }
        Ties::default().write(&self.open_bell()?)
    }

    /// Notes that these files belong together, as long as they are in their places.
    pub(crate) fn tie(&self, files: [FileId; 3]) -> io::Result<()> {
        if Ties::read(&plain::open(&self.bell, OFlags::RDONLY)?) == self.ties() {
            return Ok(());
        }
        let _alone = self.lock_bell()?;
        let ties = self.ties();
        if self.files()? == files { ties.write(&self.open_bell()?) } else { Ok(()) }
    }

    fn ties(&self) -> Ties {
        Ties::of([&self.path, &self.log, &self.index])
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
            // For reading: closing it rings for nobody.
            let bell = again(|| {
                self.create_bell()?;
                plain::open(&self.bell, OFlags::RDONLY)
            })?;
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

    /// Opens the bell for writing, which is all that ringing takes; makes it again if it was removed.
    pub(crate) fn open_bell(&self) -> io::Result<File> {
        again(|| {
            self.create_bell()?;
            plain::open(&self.bell, OFlags::WRONLY)
        })
    }
}

/// Somebody may remove a directory or a bell right after it was made.
fn again<T>(step: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match step() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(1)),
            done => return done,
        }
    }
    step()
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

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// The three files in a new directory, which files they are, and one more that can be moved.
    fn files(test: &str) -> (PathBuf, Place, [FileId; 3]) {
        let directory = std::env::temp_dir().join(format!("bandog-{test}-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let place = Place::new(&directory.join("locks.db")).unwrap();
        for path in [&place.path, &place.log, &place.index, &directory.join("other")] {
            fs::write(path, "").unwrap();
        }
        let files = place.files().unwrap();
        (directory, place, files)
    }

    fn what_is_left(test: &str, change: impl Fn(&Place, &Path)) -> [bool; 3] {
        let (directory, place, files) = files(test);
        change(&place, &directory.join("other"));
        place.leave(files).unwrap();
        let left = [&place.path, &place.log, &place.index].map(|path| path.exists());
        fs::remove_dir_all(directory).unwrap();
        left
    }

    #[test]
    fn half_a_database_goes_whole() {
        let none = [false; 3];
        assert_eq!(what_is_left("log-gone", |place, _| fs::remove_file(&place.log).unwrap()), none);
        assert_eq!(what_is_left("index-gone", |place, _| fs::remove_file(&place.index).unwrap()), none);
        assert_eq!(what_is_left("log-changed", |place, other| fs::rename(other, &place.log).unwrap()), none);
    }

    #[test]
    fn a_database_that_came_instead_stays_without_the_old_log() {
        let moved = |place: &Place, other: &Path| fs::rename(other, &place.path).unwrap();
        assert_eq!(what_is_left("moved", moved), [true, false, false]);
        let with_log = |place: &Place, other: &Path| {
            fs::rename(&place.index, &place.log).unwrap();
            fs::rename(other, &place.path).unwrap();
        };
        assert_eq!(what_is_left("moved-with-log", with_log), [true, true, false]);
    }

    #[test]
    fn a_whole_database_stays() {
        assert_eq!(what_is_left("whole", |_, _| {}), [true; 3]);
    }
}
