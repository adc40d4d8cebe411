//! The file system under the file: what sort it is, and how much room is left.

use bandog_core::checkup::{Check, Fitness, Remark};
use rustix::fs::{StatVfsMountFlags, statfs};

use super::place::ELSEWHERE;
use crate::ailment::{self, ROOM};
use crate::filesystem::{SYSTEMS, Sort, by_number};
use crate::place::Place;

pub(super) const FILE_SYSTEM: Check = Check::new(
    "file-system",
    "SQLite's locks and its shared index work within one machine, and leases are counted on that machine's clock",
);
pub(super) const SPACE: Check = Check::new(
    "space",
    "on a full disk nothing is acquired, renewed or released, and holds are lost at their deadline",
);

const LITTLE: u64 = 16 << 20;

pub(super) fn kind(place: &Place) -> Remark {
    let Some(number) = number(place) else {
        return FILE_SYSTEM
            .unknown("the system does not tell which it is")
            .change("findmnt -T PATH, or df -T, shows it");
    };
    if is_read_only(place) {
        return FILE_SYSTEM.wrong(ailment::mounted_read_only(place)).change(ELSEWHERE);
    }
    let (fitness, saw) = classify(number);
    let elsewhere = "sqlite:PATH on a disk of this machine; for several machines redis://…";
    match fitness {
        Fitness::Fine => FILE_SYSTEM.fine(saw),
        Fitness::Wrong => FILE_SYSTEM.wrong(saw).change(elsewhere),
        _ => FILE_SYSTEM.risky(saw).change(elsewhere),
    }
}

/// The magic number of the nearest that is there.
fn number(place: &Place) -> Option<u64> {
    let seen = place.path().ancestors().find_map(|path| statfs(path).ok())?;
    u64::try_from(i128::from(seen.f_type) & 0xffff_ffff).ok()
}

fn is_read_only(place: &Place) -> bool {
    ailment::system(place).is_some_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Why no file can be made there, whatever the permissions say.
pub(super) fn unmakeable(place: &Place) -> Option<String> {
    if is_read_only(place) {
        return Some("the file system is mounted read-only".to_owned());
    }
    let number = number(place)?;
    let (_, name, _) = SYSTEMS.iter().find(|(magic, _, sort)| *magic == number && *sort == Sort::Kernel)?;
    Some(format!("{name} is a view of the kernel and takes no files"))
}

fn classify(number: u64) -> (Fitness, String) {
    let known = by_number(number.into());
    let name = known.map_or_else(
        || format!("a file system that is not known here ({number:#x}); leases from before a reboot are waited out"),
        |(name, _)| name.to_owned(),
    );
    match known.map(|(_, sort)| sort) {
        Some(Sort::Apart) => {
            (Fitness::Wrong, format!("{name}, which other machines may reach, or whose locks may not hold"))
        }
        Some(Sort::Passing) => (
            Fitness::Fine,
            format!("{name}: gone at the next boot, as all leases are; tokens then go by the wall clock"),
        ),
        Some(Sort::Layer) => {
            (Fitness::Fine, format!("{name}: other containers see another file, unless it is mounted into them"))
        }
        Some(Sort::Kernel) => (Fitness::Wrong, format!("{name}, a view of the kernel that takes no files")),
        Some(Sort::Local) | None => (Fitness::Fine, name),
    }
}

pub(super) fn space(place: &Place) -> Remark {
    let Some(system) = ailment::system(place) else {
        return SPACE.unknown("the system does not tell").change("df shows it");
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    // Some file systems do not count files.
    let no_files = system.f_files > 0 && system.f_favail == 0;
    let saw = format!("{} MB free", free >> 20);
    let make_room = "make room: locks need a few megabytes";
    match free {
        _ if no_files => SPACE.wrong("no file can be added (no inodes left)").change(make_room),
        0..ROOM => SPACE.wrong(format!("{free} bytes free")).change(make_room),
        ROOM..LITTLE => SPACE.risky(saw).change(make_room),
        _ => SPACE.fine(saw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_judged_by_their_number() {
        for (number, fitness, name) in [
            (0x6969, Fitness::Wrong, "NFS"),
            (0xff53_4d42, Fitness::Wrong, "CIFS"),
            (0xfe53_4d42, Fitness::Wrong, "SMB2"),
            (0x00c3_6400, Fitness::Wrong, "Ceph"),
            (0x9fa0, Fitness::Wrong, "proc"),
            (0x6265_6572, Fitness::Wrong, "sysfs"),
            (0x0102_1997, Fitness::Wrong, "9p"),
            (0x6573_5546, Fitness::Wrong, "FUSE"),
            (0x0bd0_0bd0, Fitness::Wrong, "Lustre"),
            (0x4750_4653, Fitness::Wrong, "GPFS"),
            (0x7461_636f, Fitness::Wrong, "OCFS2"),
            (0x0116_1970, Fitness::Wrong, "GFS2"),
            (0x786f_4256, Fitness::Wrong, "VirtualBox"),
            (0x0102_1994, Fitness::Fine, "next boot"),
            (0xef53, Fitness::Fine, "ext4"),
            (0x1234, Fitness::Fine, "0x1234"),
        ] {
            let (judged, saw) = classify(number);
            assert_eq!(judged, fitness, "{saw}");
            assert!(saw.contains(name), "{saw}");
        }
    }
}
