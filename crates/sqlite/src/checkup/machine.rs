//! The machine: how fast its disk is, whether waiters can be woken, and whether boots and clocks can be told.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandog_core::checkup::{Check, Pace, Remark, brief};
use rustix::fs::inotify;

use crate::busy::monotonic;
use crate::error;
use crate::host::{Host, System};
use crate::place::Place;

pub(super) const SYNCING: Check =
    Check::new("syncing", "about once a minute of use a small write is synced, and calls wait for it");
pub(super) const WAKING: Check =
    Check::new("waking", "waiters in other processes are woken by inotify; without it they look every 10 ms");
pub(super) const BOOT: Check = Check::new("boot", "leases end with the boot: without its id they would outlive it");
pub(super) const CLOCK: Check =
    Check::new("clock", "leases are counted on the time since boot, which must be the same for all who share the file");

const SYNCS: u32 = 5;
const OFFSETS: &str = "/proc/self/timens_offsets";

/// Nothing where there is no directory yet.
pub(super) fn syncing(place: &Place, pace: &Pace) -> Option<Remark> {
    if !place.directory().is_dir() {
        return None;
    }
    Some(match longest_sync(place.directory()) {
        Ok(longest) if longest < pace.response_timeout / 4 => {
            SYNCING.fine(format!("{SYNCS} writes were synced; the longest took {}", brief(longest)))
        }
        Ok(longest) => SYNCING
            .risky(format!("syncing a page took {}", brief(longest)))
            .change("sqlite:PATH on a faster or less busy disk, or a longer response_timeout"),
        Err(error) => {
            SYNCING.unknown(format!("no file could be written beside it: {error}")).change("see permissions and space")
        }
    })
}

/// A file of our own that is removed again, whatever happens.
struct Scrap(PathBuf);

impl Drop for Scrap {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

fn longest_sync(directory: &Path) -> io::Result<Duration> {
    let path = directory.join(format!(".bandog-checkup-{:016x}", getrandom::u64().unwrap_or(0)));
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let _scrap = Scrap(path);
    let mut longest = Duration::ZERO;
    for _ in 0..SYNCS {
        let begin = monotonic();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        longest = longest.max(monotonic().saturating_sub(begin));
    }
    Ok(longest)
}

pub(super) fn waking() -> Remark {
    match inotify::init(inotify::CreateFlags::CLOEXEC) {
        Ok(_) => WAKING.fine("inotify is there"),
        Err(error) => WAKING.risky(format!("no inotify: {error}")).change("sysctl fs.inotify.max_user_instances=512"),
    }
}

pub(super) fn boot() -> Remark {
    match System::default().boot() {
        Ok(_) => BOOT.fine("the boot has an id"),
        Err(error) => BOOT.wrong(error::no_boot(error).message).change("mount /proc"),
    }
}

pub(super) fn clock() -> Remark {
    judge_offsets(std::fs::read_to_string(OFFSETS).ok().as_deref())
}

/// A time namespace has its own time since boot. Kernels without them have no such file.
fn judge_offsets(offsets: Option<&str>) -> Remark {
    let boottime = offsets.and_then(|text| text.lines().find_map(|line| line.trim().strip_prefix("boottime")));
    let moved = boottime.is_some_and(|rest| rest.split_whitespace().any(|number| number != "0"));
    if moved {
        return CLOCK
            .risky("this process is in a time namespace, with another time since boot")
            .change("share the file only with processes in the same time namespace");
    }
    CLOCK.fine("leases are counted on CLOCK_BOOTTIME, which never steps")
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn a_time_namespace_is_told() {
        assert_eq!(judge_offsets(None).fitness, Fitness::Fine);
        assert_eq!(
            judge_offsets(Some("monotonic           0         0\nboottime            0         0\n")).fitness,
            Fitness::Fine
        );
        assert_eq!(
            judge_offsets(Some("monotonic           0         0\nboottime        86400         0\n")).fitness,
            Fitness::Risky
        );
    }

    #[test]
    fn nothing_stays_of_the_file_that_is_synced() {
        let directory = std::env::temp_dir().join(format!("bandog-sync-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        assert!(longest_sync(&directory).is_ok());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir(&directory).unwrap();
        assert!(longest_sync(&directory).is_err());
    }
}
