//! What flock(1) says, in its own words: nothing, unless it is told to be verbose.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use crate::note::Note;
use crate::say::write;

/// The words for one command line.
#[derive(Debug)]
pub(crate) struct Words {
    verbose: bool,
    /// What is run under the lock.
    program: Option<String>,
}

impl Words {
    pub(crate) fn new(verbose: bool, program: Option<&OsString>) -> Self {
        Self { verbose, program: program.map(|program| program.to_string_lossy().into_owned()) }
    }

    /// Says it, if flock would; false for what it does not know, such as a lost lease.
    pub(crate) fn say(&self, note: &Note) -> bool {
        match note {
            Note::Busy { waited: None, .. } => self.complain("failed to get lock"),
            Note::Busy { waited: Some(_), .. } => self.complain("timeout while waiting to get lock"),
            Note::Acquired { waited, .. } => self.acquired(*waited),
            Note::Waiting { .. }
            | Note::Unanswered { .. }
            | Note::NoStore { .. }
            | Note::Free { .. }
            | Note::Interrupted { .. }
            | Note::Started { .. }
            | Note::Stopped
            | Note::Resumed
            | Note::AtLeast { .. }
            | Note::Shortened { .. }
            | Note::Released { .. } => {}
            Note::Danger { .. }
            | Note::Lost { .. }
            | Note::MaxHold { .. }
            | Note::Unreleased { .. }
            | Note::NotCalled { .. } => return false,
        }
        true
    }

    /// Says how long it took, and what comes now: on standard output, as flock does.
    pub(crate) fn acquired(&self, waited: Duration) {
        if !self.verbose {
            return;
        }
        let mut text = format!("dflock: getting lock took {:.6} seconds\n", waited.as_secs_f64());
        if let Some(program) = &self.program {
            text += &format!("dflock: executing {program}\n");
        }
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    fn complain(&self, text: &str) {
        if self.verbose {
            write(&format!("dflock: {text}\n"));
        }
    }
}
