//! What the store asks of the machine: two clocks and the name of the boot. Tests put a machine of their own here.
//!
//! A container may show another boot id and another time since boot than its kernel has. A made-up id is recognised by what is mounted
//! over it, and the offset of a time namespace is taken off: then all processes of one kernel count leases on one clock, whatever their
//! containers pretend.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use bandog_core::time::{LeaseTime, WallTime};
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
use rustix::time::{ClockId, clock_gettime};

/// The machine under a store. Every process that opens one file must see the same clocks.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// The clock of leases: starts with the boot, never steps, goes on while the machine sleeps.
    fn lease(&self) -> LeaseTime;

    /// The wall clock; it may step.
    fn wall(&self) -> WallTime;

    /// Which boot this is; nothing where the name it shows may be made up.
    ///
    /// # Errors
    /// When the machine does not tell which clock this process has.
    fn boot(&self) -> io::Result<Option<BootId>>;
}

/// One boot of a machine: leases do not outlive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BootId(pub u128);

/// The machine that this process runs on.
#[derive(Debug, Default)]
pub struct System {
    seen: OnceLock<Seen>,
}

/// What does not change while a process runs.
#[derive(Debug, Clone, Copy)]
struct Seen {
    boot: Option<BootId>,
    /// By how much this process is shown more time since boot than has passed, in microseconds.
    ahead: i64,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OFFSETS: &str = "/proc/self/timens_offsets";
/// The magic number of the kernel's own view of itself.
const PROC: i128 = 0x9fa0;

impl System {
    fn seen(&self) -> io::Result<Seen> {
        if let Some(seen) = self.seen.get() {
            return Ok(*seen);
        }
        let seen = Seen { boot: boot_id(Path::new(BOOT_ID))?, ahead: ahead()? };
        Ok(*self.seen.get_or_init(|| seen))
    }
}

impl Host for System {
    fn lease(&self) -> LeaseTime {
        // No store is opened where this fails.
        let ahead = self.seen().map_or(0, |seen| seen.ahead);
        LeaseTime::from_millis(micros(ClockId::Boottime).saturating_add_signed(ahead.saturating_neg()) / 1000)
    }

    fn wall(&self) -> WallTime {
        WallTime::from_micros(micros(ClockId::Realtime))
    }

    fn boot(&self) -> io::Result<Option<BootId>> {
        Ok(self.seen()?.boot)
    }
}

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // A wall clock before 1970 counts as 1970; stamps have a floor of their own.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + time.tv_nsec.unsigned_abs() / 1000
}

/// The id at this path, if the kernel itself says it.
fn boot_id(path: &Path) -> io::Result<Option<BootId>> {
    let mut file = File::open(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let id = parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a boot id"))?;
    Ok(is_the_kernels(&file)?.then_some(id))
}

/// Whether a file is the kernel's, and not one that was mounted over it. Kernels before 5.8 do not tell, and count as if one were.
fn is_the_kernels(file: &File) -> io::Result<bool> {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    let (known, set) = (stat.stx_attributes_mask, stat.stx_attributes);
    let is_plain = known.contains(StatxAttributes::MOUNT_ROOT) && !set.contains(StatxAttributes::MOUNT_ROOT);
    Ok(is_plain && i128::from(rustix::fs::fstatfs(file)?.f_type) == PROC)
}

/// The offset of the time namespace that this process is in.
pub(crate) fn ahead() -> io::Result<i64> {
    let link = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}"));
    let own = match link("time") {
        // A kernel without time namespaces; but a machine without /proc tells nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/ns").exists() => return Ok(0),
        own => own?,
    };
    // The list of offsets is that of the children.
    if own != link("time_for_children")? {
        return Err(io::Error::other("this process is about to change its time namespace"));
    }
    let text = std::fs::read_to_string(OFFSETS)?;
    offset(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{OFFSETS} cannot be read")))
}

fn offset(text: &str) -> Option<i64> {
    let mut words = text.lines().find_map(|line| line.trim().strip_prefix("boottime"))?.split_whitespace();
    let (seconds, nanos): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(seconds.checked_mul(1_000_000)?.saturating_add(nanos / 1000))
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

    #[test]
    fn a_file_that_is_not_the_kernels_names_no_boot() {
        let path = std::env::temp_dir().join(format!("bandog-boot-id-{}", std::process::id()));
        std::fs::write(&path, "6ba7b810-9dad-11d1-80b4-00c04fd430c8\n").unwrap();
        assert_eq!(boot_id(&path).unwrap(), None);
        std::fs::write(&path, "boot").unwrap();
        assert!(boot_id(&path).is_err());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        assert_eq!(offset("monotonic           0         0\nboottime            0         0\n"), Some(0));
        assert_eq!(offset("monotonic           0         0\nboottime        86400    500000\n"), Some(86_400_000_500));
        assert_eq!(offset("monotonic 0 0\nboottime -3 0\n"), Some(-3_000_000));
        assert_eq!(offset("monotonic 0 0\n"), None);
    }
}
