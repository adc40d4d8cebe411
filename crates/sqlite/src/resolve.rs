//! Where a path leads once its links are followed. SQLite puts its log beside the file itself, so that is where all four have to be.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::plain::{ELSEWHERE, Odd};

/// As many as the kernel follows.
const LINKS: usize = 40;

/// The file that a path names, through links in its directories and at its end, whether or not the file or its directory is there.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let (mut real, mut rest, mut links) = (PathBuf::from("/"), steps(&std::path::absolute(path)?), 0);
    while let Some(step) = rest.pop_front() {
        if step == ".." {
            real.pop();
            continue;
        }
        let next = real.join(step);
        let Some(target) = follow(&next)? else {
            real = next;
            continue;
        };
        links += 1;
        if links > LINKS {
            return Err(Errno::LOOP.into());
        }
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        let mut before = steps(&target);
        before.append(&mut rest);
        rest = before;
    }
    Ok(real)
}

/// The names on the way, without those that go nowhere.
fn steps(path: &Path) -> VecDeque<OsString> {
    let is_step = |step: &Component<'_>| matches!(step, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_step).map(|step| step.as_os_str().to_owned()).collect()
}

/// Where the link at this path leads, if it is one.
fn follow(path: &Path) -> io::Result<Option<PathBuf>> {
    let Some(stat) = rustix::fs::lstat(path).ok().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
    else {
        return Ok(None);
    };
    // Anybody could have files made for him wherever we may make them, and have us use his instead of ours.
    if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Odd::error(path, "is a symbolic link of another user", ELSEWHERE));
    }
    std::fs::read_link(path).map(Some)
}
