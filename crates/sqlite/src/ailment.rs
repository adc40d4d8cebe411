//! What is wrong with the files, found by looking at them: SQLite says little more than that something is.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bandog_core::store::StoreErrorKind;
use rustix::fs::{Access, AtFlags, CWD, StatVfs, StatVfsMountFlags, accessat, statvfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::place::Place;

/// What a store needs to begin: a part of the index, a page, and the note in the bell.
pub(crate) const ROOM: u64 = 65_536;
/// Open files that a connection needs at once: the three, the bell, and a directory to sync.
const OPEN_FILES: usize = 5;

pub(crate) type Ailment = (StoreErrorKind, String);

/// The first thing that is wrong, if any can be seen.
pub(crate) fn of(place: &Place) -> Option<Ailment> {
    let odd = place.check().err().map(|odd| (StoreErrorKind::Unfit, odd.to_string()));
    odd.or_else(|| unwritable_system(place))
        .or_else(|| forbidden(place))
        .or_else(|| exhausted(place))
        .or_else(|| full(place))
}

pub(crate) fn system(place: &Place) -> Option<StatVfs> {
    place.directory().ancestors().find_map(|directory| statvfs(directory).ok())
}

fn unwritable_system(place: &Place) -> Option<Ailment> {
    let system = system(place)?;
    system.f_flag.contains(StatVfsMountFlags::RDONLY).then(|| (StoreErrorKind::Denied, mounted_read_only(place)))
}

pub(crate) fn mounted_read_only(place: &Place) -> String {
    let path = place.path().display();
    format!("{path} is on a file system that is mounted read-only; give bandog a path on one that can be written to")
}

/// A permission that is missing.
pub(crate) fn forbidden(place: &Place) -> Option<Ailment> {
    let files = [&place.path, &place.log, &place.index, &place.bell];
    let file = || files.into_iter().find_map(|path| unusable(path));
    let found = closed(place.directory()).or_else(file).or_else(|| {
        let (directory, beside) = (place.directory(), "where the files beside the database are made");
        let needed = files.iter().any(|path| !path.exists()) && lacks(directory, Access::WRITE_OK);
        needed.then(|| format!("no permission to write to {}, {beside}{}", directory.display(), whose(directory)))
    });
    found.map(|found| (StoreErrorKind::Denied, found))
}

fn unusable(path: &Path) -> Option<String> {
    let told = |what: &str| format!("no permission to {what} {}{}", path.display(), whose(path));
    let unreadable = lacks(path, Access::READ_OK).then(|| told("read"));
    unreadable.or_else(|| lacks(path, Access::WRITE_OK).then(|| told("write to")))
}

/// The directory on the way that may not be entered. From the bottom, as the last that can be seen is the one that refuses.
fn closed(directory: &Path) -> Option<String> {
    let seen = directory.ancestors().find(|directory| directory.symlink_metadata().is_ok())?;
    lacks(seen, Access::EXEC_OK).then(|| format!("no permission to enter {}{}", seen.display(), whose(seen)))
}

/// Why a file or directory may not be made.
pub(crate) fn unmakeable(place: &Place) -> Option<String> {
    let beside = || unusable(&place.bell);
    closed(place.directory()).or_else(beside).or_else(|| {
        let seen = place.directory().ancestors().find(|directory| directory.symlink_metadata().is_ok())?;
        let what = if seen == place.directory() { "files" } else { "directories" };
        lacks(seen, Access::WRITE_OK)
            .then(|| format!("no permission to create {what} in {}{}", seen.display(), whose(seen)))
    })
}

/// Whose it is and who we are: what is missing between the two.
fn whose(path: &Path) -> String {
    let Ok(seen) = path.metadata() else { return String::new() };
    let (owner, we, mode) = (user(seen.uid()), user(geteuid().as_raw()), seen.mode() & 0o7777);
    format!("; it belongs to {owner}, mode {mode:03o}; you are {we}")
}

/// A user, by name where the machine's own list has one. Users of a directory service are told by number.
pub(crate) fn user(uid: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    name.map_or_else(|| format!("uid {uid}"), |name| format!("{name} (uid {uid})"))
}

/// Whether it is there and not for us.
fn lacks(path: &Path, how: Access) -> bool {
    matches!(accessat(CWD, path, how, AtFlags::EACCESS), Err(Errno::ACCESS | Errno::PERM))
}

/// Whether too few files can be opened. Those that were open when it failed are closed by now, so as many are opened as it takes.
fn exhausted(place: &Place) -> Option<Ailment> {
    let opened: io::Result<Vec<File>> = (0..OPEN_FILES).map(|_| File::open("/dev/null")).collect();
    opened.err().filter(is_of_exhaustion).map(|error| too_many(place, &error))
}

pub(crate) fn is_of_exhaustion(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

pub(crate) fn too_many(place: &Place, error: &io::Error) -> Ailment {
    let path = place.path().display();
    let text = format!(
        "{path} cannot be opened with the files beside it: {error}; close some, or raise the limit (ulimit -n)"
    );
    (StoreErrorKind::Unavailable, text)
}

fn full(place: &Place) -> Option<Ailment> {
    let system = system(place)?;
    let no_room = system.f_bavail.saturating_mul(system.f_frsize) < ROOM;
    // Some file systems do not count files.
    let no_files = system.f_files > 0 && system.f_favail == 0;
    (no_room || no_files).then(|| (StoreErrorKind::Unfit, no_space(place)))
}

pub(crate) fn no_space(place: &Place) -> String {
    format!("the disk with {} is full; make room and try again", place.path().display())
}
