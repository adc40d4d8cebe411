//! A shell in a pseudo-terminal of its own, for tests that type. Used with [`Run`](crate::hold::Run).
//!
//! What is typed is echoed into the output as well; so scripts are kept in files, and only they know the words that are
//! waited for.

use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pty_process::blocking::{Command as PtyCommand, Pty, open};
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

use crate::hold::{LIMIT, eventually, now};

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_Z: &str = "\x1a";
pub(crate) const CTRL_BACKSLASH: &str = "\x1c";

/// A terminal with somebody in it.
#[derive(Debug)]
pub(crate) struct Screen {
    pty: Arc<Terminal>,
    /// The first process at the terminal.
    pub(crate) leader: Child,
    output: Arc<Mutex<Vec<u8>>>,
    seen: usize,
}

struct Terminal(Pty);

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Terminal")
    }
}

impl Screen {
    /// Starts `command` at a terminal of its own.
    pub(crate) fn new(command: Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(pty_process::Size::new(24, 80)).unwrap();
        let leader = PtyCommand::from(command).spawn(pts).unwrap();
        let (pty, output) = (Arc::new(Terminal(pty)), Arc::new(Mutex::new(Vec::new())));
        let (source, sink) = (pty.clone(), output.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Fails when the last process has closed the terminal.
            while let Ok(length @ 1..) = (&source.0).read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Self { pty, leader, output, seen: 0 }
    }

    pub(crate) fn type_in(&self, keys: &str) {
        (&self.pty.0).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for `words` in what has not been waited for yet.
    pub(crate) fn expect(&mut self, words: &str) {
        let deadline = now() + LIMIT;
        loop {
            let unseen = self.unseen();
            if let Some(at) = unseen.find(words) {
                self.seen += at + words.len();
                return;
            }
            assert!(now() < deadline, "no {words:?} after {unseen:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the leader has put somebody else into the foreground: what is typed before that is for the leader.
    pub(crate) fn expect_job(&self) {
        let leader = i32::try_from(self.leader.id()).unwrap();
        eventually("a job in the foreground", || (self.foreground() != leader).then_some(()));
    }

    /// What has come since the words that were waited for last.
    pub(crate) fn unseen(&self) -> String {
        // Whatever is typed here is ASCII, so that positions in the text are positions in the bytes.
        self.output.lock().unwrap()[self.seen..].iter().map(|byte| char::from(*byte & 0x7f)).collect()
    }

    /// Everything that was written to the terminal.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.output.lock().unwrap().clone()
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.pty.0.resize(pty_process::Size::new(rows, columns)).unwrap();
    }

    /// The process group in the foreground.
    pub(crate) fn foreground(&self) -> i32 {
        tcgetpgrp(&self.pty.0).unwrap().as_raw_pid()
    }

    /// Whether the terminal edits lines and echoes, as it does for a shell's commands.
    pub(crate) fn is_cooked(&self) -> bool {
        tcgetattr(&self.pty.0).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.leader.kill();
        let _ = self.leader.wait();
    }
}
