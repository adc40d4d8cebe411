//! File systems by their number: which of them other machines may reach, and which certainly not. Places ask before a store is opened,
//! and the checkup tells.

/// File systems by their magic number, as far as it matters or people know them.
pub(crate) const SYSTEMS: &[(u64, &str, Sort)] = &[
    (0x6969, "NFS", Sort::Apart),
    (0x517b, "SMB", Sort::Apart),
    (0xff53_4d42, "CIFS", Sort::Apart),
    (0xfe53_4d42, "SMB2", Sort::Apart),
    (0x00c3_6400, "Ceph", Sort::Apart),
    (0x5346_414f, "AFS", Sort::Apart),
    (0x0bd0_0bd0, "Lustre", Sort::Apart),
    (0x0116_1970, "GFS2", Sort::Apart),
    (0x7461_636f, "OCFS2", Sort::Apart),
    (0x0102_1997, "9p", Sort::Apart),
    (0x6573_5546, "FUSE", Sort::Apart),
    (0x6b41_4653, "AFS", Sort::Apart),
    (0x4750_4653, "GPFS", Sort::Apart),
    (0x786f_4256, "VirtualBox's shared folder", Sort::Apart),
    (0xbacb_acbc, "VMware's shared folder", Sort::Apart),
    (0x7c7c_6673, "Parallels' shared folder", Sort::Apart),
    (0x1983_0326, "BeeGFS", Sort::Apart),
    (0x2003_0528, "OrangeFS", Sort::Apart),
    (0xaad7_aaea, "PanFS", Sort::Apart),
    (0xbeef_dead, "StorNext", Sort::Apart),
    (0x0131_11a8, "IBRIX", Sort::Apart),
    (0x6163_6673, "ACFS", Sort::Apart),
    (0xa501_fcf5, "VxFS", Sort::Apart),
    (0x7375_7245, "Coda", Sort::Apart),
    (0x564c, "NCP", Sort::Apart),
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
    (0x5265_4973, "ReiserFS", Sort::Local),
    (0x3153_464a, "JFS", Sort::Local),
    (0x2405_1905, "UBIFS", Sort::Local),
    (0x7366_746e, "NTFS", Sort::Local),
    (0x794c_7630, "overlayfs", Sort::Layer),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Other machines may reach it, or what its locks are worth depends on who wrote it.
    Apart,
    /// Gone at the next boot, as all leases are.
    Passing,
    /// A disk of this machine.
    Local,
    /// A container's own layer.
    Layer,
    /// A view of the kernel: no file of ours can be made there, whatever the permissions say.
    Kernel,
}

/// The name and sort of a file system, if it is known.
pub(crate) fn by_number(number: i128) -> Option<(&'static str, Sort)> {
    let found = SYSTEMS.iter().find(|(magic, ..)| i128::from(*magic) == number & 0xffff_ffff);
    found.map(|(_, name, sort)| (*name, *sort))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_once() {
        let mut numbers: Vec<u64> = SYSTEMS.iter().map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:x?}");
        assert_eq!(
            by_number(i128::from(0xbacb_acbc_u32.cast_signed())),
            Some(("VMware's shared folder", Sort::Apart)),
            "as a signed word of 32 bits"
        );
    }
}
