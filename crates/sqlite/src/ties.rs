//! Which database, log and index were last open together, written down in the bell.
//!
//! A log says nothing about the database that it belongs to. When somebody moves a copy over the database, SQLite would move the old log
//! into it and so damage it. Who opens the files compares them with this note and finds the log that stayed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};

/// A file: its device, its number there, and when it was made, as numbers are given again. Zeros for none.
type Tie = [u64; 3];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ties([Tie; 3]);

const LENGTH: usize = 72;
/// Where it stands: builds of before have something else in front.
const PLACE: u64 = 4096;

impl Ties {
    /// Of the files at these paths: database, log and index.
    pub(crate) fn of(paths: [&Path; 3]) -> Self {
        Self(paths.map(|path| tie(path).unwrap_or_default()))
    }

    /// What is written in a bell.
    pub(crate) fn read(bell: &File) -> Self {
        let mut bytes = [0; LENGTH];
        // One that was never written is too short.
        let _ = bell.read_exact_at(&mut bytes, PLACE);
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        Self([(); 3].map(|()| [(); 3].map(|()| words.next().unwrap_or(0))))
    }

    pub(crate) fn write(&self, bell: &File) -> io::Result<()> {
        let bytes: Vec<u8> = self.0.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        bell.write_all_at(&bytes, PLACE)
    }

    /// Whether log and index, as they are `now`, are left from another database than the one there is now.
    pub(crate) fn outlived(&self, now: &Self) -> [bool; 2] {
        let ([database, log, index], none) = (self.0, Tie::default());
        let replaced = database != none && now.0[0] != none && database != now.0[0];
        [replaced && log != none && log == now.0[1], replaced && index != none && index == now.0[2]]
    }
}

fn tie(path: &Path) -> rustix::io::Result<Tie> {
    let stat = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::BTIME)?;
    let device = u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor);
    let made = stat.stx_btime.tv_sec.cast_unsigned() << 30 | u64::from(stat.stx_btime.tv_nsec);
    // A file system that does not know when leaves zeros there.
    Ok([device, stat.stx_ino, made])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stayed_is_outlived() {
        let (none, a, b, c) = (Tie::default(), [1, 2, 3], [1, 3, 3], [1, 4, 3]);
        let (d, e) = ([1, 2, 4], [1, 3, 5]);
        let outlived = |told, now| Ties(told).outlived(&Ties(now));
        assert_eq!(outlived([a, b, c], [d, b, c]), [true, true]);
        assert_eq!(outlived([a, b, c], [d, e, c]), [false, true]);
        assert_eq!(outlived([a, b, c], [a, b, c]), [false; 2]);
        assert_eq!(outlived([a, b, c], [a, e, none]), [false; 2]);
        assert_eq!(outlived([a, b, c], [none, b, c]), [false; 2]);
        assert_eq!(outlived([none; 3], [a, b, c]), [false; 2]);
        assert_eq!(outlived([a, none, none], [d, none, none]), [false; 2]);
    }
}
