//! The file itself: is it there or could it be, and who may use it?

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bandog_core::checkup::{Check, Remark};

use crate::ailment;
use crate::place::Place;

pub(super) const FILE: Check = Check::new(
    "file",
    "all processes must meet in one file; what stands in the place of it or beside it keeps them out",
);
pub(super) const PERMISSIONS: Check = Check::new(
    "permissions",
    "whoever can read the file can release any lock in it, and whoever can write to its directory can replace it",
);

const OTHERS_WRITE: u32 = 0o002;
const OTHERS_READ: u32 = 0o004;
/// In such a directory files are removed by their owners only.
const STICKY: u32 = 0o1000;

pub(super) fn file(place: &Place) -> Remark {
    let path = place.path().display();
    if let Err(odd) = place.check() {
        return FILE.wrong(odd.to_string());
    }
    if place.path().exists() {
        return FILE.fine(format!("{path} is there"));
    }
    match ailment::unmakeable(place) {
        Some(why) => FILE.wrong(format!("{path} is not there and cannot be made: {why}")).change(format!(
            "sudo install -d -m 2770 -g GROUP {} (see docs/sqlite.md), or another path",
            place.directory().display()
        )),
        None => FILE.fine(format!("{path} is not there yet; the first process makes it")),
    }
}

pub(super) fn permissions(place: &Place) -> Remark {
    if let Some((_, why)) = ailment::forbidden(place) {
        return PERMISSIONS.wrong(why).change("chmod and chgrp it for a group that you are in, see docs/sqlite.md");
    }
    let files = [&place.path, &place.log, &place.index, &place.bell];
    if let Some((path, mode)) = files.into_iter().find_map(|path| open_to_others(path)) {
        let may = if mode & OTHERS_WRITE > 0 { "change" } else { "read" };
        return PERMISSIONS
            .risky(format!("every user of this machine may {may} {} (mode {mode:04o})", path.display()))
            .change(format!("chmod o-rwx {0} {0}-wal {0}-shm {0}-bell", place.path().display()));
    }
    let directory = place.directory();
    let mode = directory.metadata().map_or(0, |directory| directory.mode() & 0o7777);
    if mode & OTHERS_WRITE > 0 && (mode & STICKY == 0 || !place.path().exists()) {
        return PERMISSIONS
            .risky(format!("every user of this machine may put files into {} (mode {mode:04o})", directory.display()))
            .change("put it into a directory of its own: chmod o-w, or another path");
    }
    PERMISSIONS.fine(who(place))
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
