//! What the store asks of the machine: two clocks and the name of the boot. Tests put a machine of their own here.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use bandog_core::time::{LeaseTime, WallTime};
use rustix::time::{ClockId, clock_gettime};

/// The machine under a store. Every process that opens one file must see the same clocks and the same boot.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// The clock of leases: starts with the boot, never steps, goes on while the machine sleeps.
    fn lease(&self) -> LeaseTime;

    /// The wall clock; it may step.
    fn wall(&self) -> WallTime;

    /// Which boot this is.
    ///
    /// # Errors
    /// When the machine does not tell.
    fn boot(&self) -> io::Result<BootId>;
}

/// One boot of a machine: leases do not outlive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BootId(pub u128);

/// The machine that this process runs on.
#[derive(Debug, Default)]
pub struct System {
    boot: OnceLock<BootId>,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Host for System {
    fn lease(&self) -> LeaseTime {
        LeaseTime::from_millis(micros(ClockId::Boottime) / 1000)
    }

    fn wall(&self) -> WallTime {
        WallTime::from_micros(micros(ClockId::Realtime))
    }

    fn boot(&self) -> io::Result<BootId> {
        if let Some(boot) = self.boot.get() {
            return Ok(*boot);
        }
        let text = std::fs::read_to_string(BOOT_ID)?;
        let boot = parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a boot id"))?;
        Ok(*self.boot.get_or_init(|| boot))
    }
}

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // A wall clock before 1970 counts as 1970; stamps have a floor of their own.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

fn parse(text: &str) -> Option<BootId> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16).ok().map(BootId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_boot_and_its_clocks() {
        let host = System::default();
        assert_eq!(host.boot().unwrap(), System::default().boot().unwrap());
        let before = host.lease();
        assert!(host.lease() >= before);
        assert!(host.wall() > WallTime::from_micros(1_700_000_000_000_000));
        assert_eq!(
            parse("6ba7b810-9dad-11d1-80b4-00c04fd430c8\n"),
            Some(BootId(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8))
        );
        assert_eq!(parse("boot"), None);
    }
}
