//! Looking at standard streams without using them up.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{SpliceFlags, pipe, tee};

/// More than the longest ticket.
const ENOUGH: usize = 8 * 1024;

/// The text that is there to be read right now, left where it is: what a here-document or a pipe holds. `None` if there is
/// none, or it cannot be looked at.
pub(crate) fn line(stream: impl AsFd) -> Option<String> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    let kind = file.metadata().ok()?.file_type();
    let mut text = vec![0; ENOUGH];
    let length = if kind.is_file() {
        let at = rustix::fs::tell(&file).ok()?;
        file.read_at(&mut text, at).ok()?
    } else if kind.is_fifo() && is_ready(&file) {
        let (copy, into) = pipe().ok()?;
        tee(&file, &into, ENOUGH, SpliceFlags::NONBLOCK).ok()?;
        drop(into);
        File::from(copy).read(&mut text).ok()?
    } else {
        return None;
    };
    text.truncate(length);
    String::from_utf8(text).ok().filter(|text| !text.trim().is_empty())
}

fn is_ready(file: &File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Whether what is written there is lost: the null device, which also stands in for a stream that was closed.
pub(crate) fn goes_nowhere(stream: impl AsFd) -> bool {
    let file = match stream.as_fd().try_clone_to_owned() {
        Ok(copy) => File::from(copy),
        // Not open. That there is no room for a copy says nothing.
        Err(error) => return error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()),
    };
    let null = std::fs::metadata("/dev/null").map(|null| null.rdev());
    let is_null =
        |meta: std::fs::Metadata| meta.file_type().is_char_device() && null.is_ok_and(|null| meta.rdev() == null);
    file.metadata().is_ok_and(is_null)
}
