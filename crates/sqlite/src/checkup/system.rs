//! The file system under the file: what sort it is, and how much room is left.

use bandog_core::checkup::{Check, Fitness, Remark};
use rustix::fs::{StatVfsMountFlags, statfs};

use super::place::ELSEWHERE;
use crate::ailment::{self, ROOM};
use crate::place::{Place, is_network};

pub(super) const FILE_SYSTEM: Check = Check::new(
    "file-system",
    "SQLite's locks and its shared index work within one machine, and leases are counted on that machine's clock",
);
pub(super) const SPACE: Check = Check::new(
    "space",
    "on a full disk nothing is acquired, renewed or released, and holds are lost at their deadline",
);

const LITTLE: u64 = 16 << 20;

/// File systems by their magic number, as far as it matters or people know them.
const SYSTEMS: &[(u64, &str, Sort)] = &[
    (0x6969, "NFS", Sort::Apart),
    (0x517b, "SMB", Sort::Apart),
    (0xff53_4d42, "CIFS", Sort::Apart),
    (0xfe53_4d42, "SMB2", Sort::Apart),
    (0x00c3_6400, "Ceph", Sort::Apart),
    (0x5346_414f, "AFS", Sort::Doubtful),
    (0x0bd0_0bd0, "Lustre", Sort::Doubtful),
    (0x0116_1970, "GFS2", Sort::Doubtful),
    (0x7461_636f, "OCFS2", Sort::Doubtful),
    (0x0102_1997, "9p", Sort::Doubtful),
    (0x6573_5546, "FUSE", Sort::Doubtful),
    (0x786f_4256, "VirtualBox's shared folder", Sort::Doubtful),
    (0x0102_1994, "tmpfs", Sort::Passing),
    (0x8584_58f6, "ramfs", Sort::Passing),
    (0x9fa0, "proc", Sort::Kernel),
    (0x6265_6572, "sysfs", Sort::Kernel),
    (0x0027_e0eb, "cgroup", Sort::Kernel),
    (0x6367_7270, "cgroup2", Sort::Kernel),
    (0x1cd1, "devpts", Sort::Kernel),
    (0x6462_6720, "debugfs", Sort::Kernel),
    (0x7472_6163, "tracefs", Sort::Kernel),
    (0x7363_6673, "securityfs", Sort::Kernel),
    (0xf97c_ff8c, "selinuxfs", Sort::Kernel),
    (0x6265_6570, "configfs", Sort::Kernel),
    (0xcafe_4a11, "bpf", Sort::Kernel),
    (0x6165_676c, "pstore", Sort::Kernel),
    (0xde5e_81e4, "efivarfs", Sort::Kernel),
    (0x4249_4e4d, "binfmt_misc", Sort::Kernel),
    (0x1980_0202, "mqueue", Sort::Kernel),
    (0x9584_58f6, "hugetlbfs", Sort::Kernel),
    (0xef53, "ext4", Sort::Local),
    (0x5846_5342, "XFS", Sort::Local),
    (0x9123_683e, "Btrfs", Sort::Local),
    (0x2fc1_2fc1, "ZFS", Sort::Local),
    (0xf2f5_2010, "F2FS", Sort::Local),
    (0xca45_1a4e, "bcachefs", Sort::Local),
    (0x794c_7630, "overlayfs", Sort::Layer),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Other machines reach it: refused when opened.
    Apart,
    /// Other machines may reach it, or its locks depend on who wrote it.
    Doubtful,
    /// Gone at the next boot, as all leases are.
    Passing,
    /// A disk of this machine.
    Local,
    /// A container's own layer.
    Layer,
    /// A view of the kernel: no file of ours can be made there, whatever the permissions say.
    Kernel,
}

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
    let known = SYSTEMS.iter().find(|(magic, ..)| *magic == number);
    let name = known.map_or_else(
        || format!("a file system that is not known here ({number:#x})"),
        |(_, name, _)| (*name).to_owned(),
    );
    match known.map(|(.., sort)| *sort) {
        Some(Sort::Apart) => (Fitness::Wrong, format!("{name}, which other machines reach too")),
        _ if is_network(i128::from(number)) => (Fitness::Wrong, name),
        Some(Sort::Doubtful) => {
            (Fitness::Risky, format!("{name}, which other machines may reach, or whose locks may not hold"))
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
            (0x0102_1997, Fitness::Risky, "9p"),
            (0x6573_5546, Fitness::Risky, "FUSE"),
            (0x0102_1994, Fitness::Fine, "next boot"),
            (0xef53, Fitness::Fine, "ext4"),
            (0x1234, Fitness::Fine, "0x1234"),
        ] {
            let (judged, saw) = classify(number);
            assert_eq!(judged, fitness, "{saw}");
            assert!(saw.contains(name), "{saw}");
        }
    }

    #[test]
    fn what_is_refused_when_opened_is_wrong_here_and_nothing_else() {
        // Of the kernel's views none takes a file, so none is there to be opened.
        for (number, name, _) in SYSTEMS.iter().filter(|(.., sort)| *sort != Sort::Kernel) {
            assert_eq!(is_network(i128::from(*number)), classify(*number).0 == Fitness::Wrong, "{name}");
        }
    }
}
