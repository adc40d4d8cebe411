//! Examines a file of locks and the place where it is: fit for locks, and what should be changed? `bandog::checkup` calls it.
//!
//! It works from the path and not from a store: a file that [`SqliteStore::open`](crate::SqliteStore::open) refuses is examined as far as it can be. No file is
//! made, and none that is not ours is touched; of ours only the log and its index may come to be beside it, as at every opening.

mod database;
mod machine;
mod place;
mod shell;
mod system;

use std::path::Path;
use std::sync::Arc;

use bandog_core::checkup::{Checkup, Fitness, Pace, Remark};

use crate::error;
use crate::place::Place;
use crate::schema::Owner;

/// Examines the file at a path, or the place for one that is not there yet.
///
/// ```
/// use bandog_core::checkup::{Fitness, Pace};
/// let path = std::env::temp_dir().join(format!("bandog-doc-checkup-{}.db", std::process::id()));
/// let found = bandog_sqlite::checkup(&path, &Pace::default());
/// assert!(found.about("file").unwrap().saw.contains("not there yet"));
/// assert!(found.about("boot").unwrap().fitness < Fitness::Wrong);
/// ```
pub fn checkup(path: impl AsRef<Path>, pace: &Pace) -> Checkup {
    let path = path.as_ref();
    let place = match Place::new(path) {
        Ok(place) => Arc::new(place),
        Err(error) => {
            let mut found = Checkup::of(format!("sqlite:{}", path.display()));
            found.remarks.push(place::FILE.wrong(error::unresolved(path, error).message).change(place::ELSEWHERE));
            return found;
        }
    };
    let mut found = Checkup::of(format!("sqlite:{}", place.path().display()));
    let file = place::file(&place);
    let usable = file.fitness < Fitness::Wrong;
    found.remarks.push(file);
    if usable {
        found.remarks.extend(inside(&place, pace));
    } else {
        // What stands in the place of the file is not ours: its permissions and its room are not our business.
        found.remarks.push(system::kind(&place));
    }
    found.remarks.extend([machine::boot(), machine::clock()]);
    found
}

/// What there is to say where the file is, or could be.
fn inside(place: &Arc<Place>, pace: &Pace) -> Vec<Remark> {
    let owner = database::owner(place);
    // Nothing is written beside what is somebody else's.
    let is_foreign = matches!(owner, Some(Ok(Owner::Foreign(_)) | Err(_)));
    let mut remarks: Vec<Remark> = place::permissions(place, owner.as_ref()).into_iter().collect();
    remarks.extend([system::kind(place), system::space(place)]);
    remarks.extend(database::examine(place, owner, pace));
    if !is_foreign {
        remarks.extend(machine::syncing(place, pace));
        remarks.extend(machine::waking(place));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Check;

    use super::*;

    /// Everything that is looked at, in the order of the remarks. `docs/doctor.md` has a row for each.
    const CHECKS: &[Check] = &[
        place::FILE,
        place::PERMISSIONS,
        system::FILE_SYSTEM,
        system::SPACE,
        database::DATABASE,
        database::WAL,
        database::WRITING,
        machine::SYNCING,
        machine::WAKING,
        machine::BOOT,
        machine::CLOCK,
    ];

    #[test]
    fn the_page_has_a_row_for_every_check() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md")).unwrap();
        let (_, page) = page.split_once("## SQLite").unwrap();
        for check in CHECKS {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", check.about)));
            assert!(row.is_some(), "docs/doctor.md has no row for {}", check.about);
        }
    }
}
