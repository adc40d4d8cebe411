//! Where a path leads once its links are followed. SQLite puts its log beside the file itself, so that is where all four have to be.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::plain::{ELSEWHERE, Odd};

/// As many as the kernel follows.
const LINKS: usize = 40;

/// The file that a path names, through links in its directories and at its end, whether or not the file or its directory is there.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = in_real_directory(std::path::absolute(path)?);
    for _ in 0..LINKS {
        let Some(target) = follow(&path)? else { return Ok(path) };
        path = in_real_directory(path.parent().unwrap_or(&path).join(target));
    }
    Err(Errno::LOOP.into())
}

/// Where the link at this path leads, if it is one.
fn follow(path: &Path) -> io::Result<Option<PathBuf>> {
    let Some(stat) = rustix::fs::lstat(path).ok().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
    else {
        return Ok(None);
    };
    // In a directory that is shared, anybody could have files made for him wherever we may make them.
    if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Odd::error(path, "is a symbolic link of another user", ELSEWHERE));
    }
    std::fs::read_link(path).map(Some)
}

/// The same path with the links of its directories followed, as far as they are there.
fn in_real_directory(path: PathBuf) -> PathBuf {
    let real = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    match real.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        Some(resolved) => resolved,
        None => path,
    }
}
