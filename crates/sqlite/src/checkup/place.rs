//! The file itself: is it there or could it be, and who may use it?

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bandog_core::checkup::{Check, Remark};
use rustix::process::geteuid;

use super::shell::quoted;
use super::system;
use crate::ailment;
use crate::place::Place;
use crate::schema::Owner;

pub(super) const FILE: Check = Check::new(
    "file",
    "all processes must meet in one file; what stands in the place of it or beside it keeps them out",
);
pub(super) const PERMISSIONS: Check = Check::new(
    "permissions",
    "whoever can read the file can release any lock in it, and whoever can write to its directory can replace it",
);

/// Advice where a command would change what is not ours.
pub(super) const ELSEWHERE: &str = "give bandog another path: sqlite:PATH in a directory that you may write to";
const PRIVATE: &str = "give bandog another path: sqlite:PATH in a directory that only its users may write to";
const SHARE: &str =
    "give bandog another path: sqlite:PATH; if this is its file, share it with a group, see docs/sqlite.md";

const THEIRS: &str =
    "give bandog another path: sqlite:PATH in a directory of your own, or share it with a group, see docs/sqlite.md";

/// Their group may write to them.
const SHARED_BY_GROUP: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const OTHERS_READ: u32 = 0o004;
/// In such a directory files are removed by their owners only.
const STICKY: u32 = 0o1000;

pub(super) fn file(place: &Place) -> Remark {
    let path = place.path().display();
    if let Err(odd) = place.check() {
        return FILE
            .wrong(odd.to_string())
            .change("give bandog another path: sqlite:PATH, or move away what stands there");
    }
    if place.path().exists() {
        return FILE.fine(format!("{path} is there"));
    }
    let told = |why: String| FILE.wrong(format!("{path} is not there and cannot be made: {why}"));
    if let Some(why) = system::unmakeable(place) {
        return told(why).change(ELSEWHERE);
    }
    match ailment::unmakeable(place) {
        Some(why) if is_missing(place.directory()) => {
            let directory = quoted(place.directory());
            told(why)
                .change(format!("sudo install -d -m 2770 -g GROUP {directory} (see docs/sqlite.md), or another path"))
        }
        // To install a directory that is there would change it, whosever it is.
        Some(why) => told(why).change(ELSEWHERE),
        None => FILE.fine(format!("{path} is not there yet; the first process makes it")),
    }
}

/// Certainly, and not only out of our sight.
fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Nothing where the file is somebody else's: who may use that is not our business.
pub(super) fn permissions(place: &Place, owner: Option<&rusqlite::Result<Owner>>) -> Option<Remark> {
    if let Some((_, why)) = ailment::forbidden(place) {
        return Some(PERMISSIONS.wrong(why).change(SHARE));
    }
    if matches!(owner, Some(Ok(Owner::Foreign(_)) | Err(_))) {
        return None;
    }
    let files = [&place.path, &place.log, &place.index, &place.bell];
    let open: Vec<(&Path, u32)> = files.into_iter().filter_map(|path| open_to_others(path)).collect();
    if let Some((path, mode)) = open.first() {
        let may = if mode & OTHERS_WRITE > 0 { "change" } else { "read" };
        let remark =
            PERMISSIONS.risky(format!("every user of this machine may {may} {} (mode {mode:04o})", path.display()));
        // An empty file, or what was left of a file that is gone, may be anybody's.
        let is_ours = matches!(owner, Some(Ok(Owner::Us(_))));
        let paths: Vec<String> = open.iter().map(|(path, _)| quoted(path)).collect();
        return Some(remark.change(if is_ours { format!("chmod o-rwx {}", paths.join(" ")) } else { PRIVATE.into() }));
    }
    if let Some(stranger) = stranger(place) {
        return Some(PERMISSIONS.risky(stranger).change(THEIRS));
    }
    let directory = place.directory();
    let mode = directory.metadata().map_or(0, |directory| directory.mode() & 0o7777);
    if mode & OTHERS_WRITE > 0 && (mode & STICKY == 0 || !place.path().exists()) {
        let saw = format!("every user of this machine may put files into {} (mode {mode:04o})", directory.display());
        return Some(PERMISSIONS.risky(saw).change(PRIVATE));
    }
    Some(PERMISSIONS.fine(who(place)))
}

/// Somebody else who may read, change and replace the file, and shares it with no group: whose locks are they?
fn stranger(place: &Place) -> Option<String> {
    let told = |path: &Path, what: &str| {
        let seen = path.metadata().ok()?;
        let is_shared = seen.mode() & SHARED_BY_GROUP > 0;
        let is_other = seen.uid() != 0 && seen.uid() != geteuid().as_raw();
        let owner = ailment::user(seen.uid());
        (is_other && !is_shared).then(|| format!("{} belongs to {owner}, who may {what}", path.display()))
    };
    told(place.path(), "release any lock in it").or_else(|| told(place.directory(), "replace the files in it"))
}

fn open_to_others(path: &Path) -> Option<(&Path, u32)> {
    let mode = path.symlink_metadata().ok()?.mode() & 0o777;
    (mode & (OTHERS_READ | OTHERS_WRITE) > 0).then_some((path, mode))
}

fn who(place: &Place) -> String {
    let Ok(mode) = place.mode() else { return "its owner alone may use it".to_owned() };
    let whose = place.path().metadata().map(|file| (file.uid(), file.gid())).ok();
    match (mode & 0o060 > 0, whose) {
        (true, Some((uid, gid))) => format!("its owner (uid {uid}) and group (gid {gid}) may use it"),
        (true, None) => "its owner and group may use it".to_owned(),
        (false, Some((uid, _))) => format!("its owner (uid {uid}) alone may use it"),
        (false, None) => "its owner alone may use it".to_owned(),
    }
}
