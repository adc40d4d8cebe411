//! The machine: how fast its disk is, whether waiters can be woken, and whether boots and clocks can be told.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandog_core::checkup::{Check, Pace, Remark, brief};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::busy::monotonic;
use crate::error;
use crate::host::{self, Host, System};
use crate::place::Place;

pub(super) const SYNCING: Check =
    Check::new("syncing", "about once a minute of use a small write is synced, and calls wait for it");
pub(super) const WAKING: Check = Check::new(
    "waking",
    "waiters in other processes are woken through named pipes; without them they look every 10 ms",
);
pub(super) const BOOT: Check =
    Check::new("boot", "leases end with the boot; where its id cannot be trusted they are waited out after a reboot");
pub(super) const CLOCK: Check =
    Check::new("clock", "leases are counted on the time since boot, which must be the same for all who share the file");

const SYNCS: u32 = 5;

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
    let path = scrap(directory);
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

/// Nothing where there is no directory yet.
pub(super) fn waking(place: &Place) -> Option<Remark> {
    if !place.directory().is_dir() {
        return None;
    }
    let path = scrap(place.directory());
    let made = mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    let _scrap = Scrap(path);
    Some(match made {
        Ok(()) => WAKING.fine("a named pipe can be made"),
        Err(error) => WAKING
            .risky(format!("no named pipe can be made beside it: {error}"))
            .change("sqlite:PATH on a file system that has named pipes"),
    })
}

fn scrap(directory: &Path) -> PathBuf {
    directory.join(format!(".bandog-checkup-{:016x}", getrandom::u64().unwrap_or(0)))
}

pub(super) fn boot() -> Remark {
    match System::default().boot() {
        Ok(Some(_)) => BOOT.fine("the boot id is the kernel's own: what is left from before a reboot is void"),
        Ok(None) => BOOT.fine("the boot id may be made up (something is mounted over it, or the kernel is older than 5.8): after a reboot leases are waited out"),
        Err(error) => BOOT.wrong(error::no_boot(error).message).change("mount /proc"),
    }
}

pub(super) fn clock() -> Remark {
    match host::ahead() {
        Ok(0) => CLOCK.fine("leases are counted on CLOCK_BOOTTIME, which never steps"),
        Ok(ahead) => CLOCK.fine(format!(
            "leases are counted on the kernel's CLOCK_BOOTTIME; {} s are taken off, by which this time namespace is ahead",
            ahead / 1_000_000
        )),
        Err(error) => CLOCK.wrong(error::no_boot(error).message).change("mount /proc, and start bandog anew"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
