//! A wait on a terminal is one line that changes and goes away.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

use pty_process::Size;
use pty_process::blocking::{Command, open};

use crate::running::until;
use crate::stage::{BANDOG, Stage};

const CLEARED: &str = "\r\u{1b}[K";

#[test]
fn the_line_fits_changes_and_is_cleared() {
    let stage = Stage::new();
    let job = stage.hold("--label somebody-with-a-very-long-label");
    let (mut pty, pts) = open().unwrap();
    pty.resize(Size::new(24, 40)).unwrap();
    let command = Command::new(BANDOG).args(["run", "job", "--", "echo", "ran"]);
    let command = command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", stage.path(""));
    let mut waits = command.env("BANDOG_STORE", stage.store()).spawn(pts).unwrap();
    let screen = stage.path("screen");
    let mut copy = File::create(&screen).unwrap();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        // Fails when the last process has closed the terminal.
        while let Ok(length @ 1..) = pty.read(&mut buffer) {
            copy.write_all(&buffer[..length]).unwrap();
        }
    });
    let shown = || std::fs::read_to_string(&screen).unwrap_or_default();
    until("the line is there and has changed", || (shown().matches("waited ").count() >= 2).then_some(()));
    job.finish().is(0);
    let status = until("the end", || waits.try_wait().unwrap());
    reader.join().unwrap();
    let shown = shown();
    assert!(status.success(), "{shown:?}");
    let mut parts = shown.split(CLEARED);
    assert_eq!(parts.next(), Some(""), "{shown:?}");
    let lines: Vec<&str> = parts.collect();
    let (last, live) = lines.split_last().unwrap();
    for line in live.iter().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("bandog: job: waited ") && line.ends_with('…'), "{shown:?}");
        assert_eq!(line.chars().count(), 39, "{shown:?}");
    }
    assert!(last.starts_with("bandog: job: acquired after ") && last.ends_with("\r\nran\r\n"), "{shown:?}");
}

/// bash goes on with its script unless whoever it waits for dies of the signal; both while the command runs and while it waits.
#[test]
fn ctrl_c_ends_a_script_of_bash() {
    for waiting in [false, true] {
        let stage = Stage::new();
        let holder = waiting.then(|| stage.hold(""));
        let (pty, pts) = open().unwrap();
        let script = format!("{BANDOG} run job -- sh -c 'echo ready; exec sleep 1000'; echo afterwards");
        let command = Command::new("bash").args(["-c", &script]).env_clear();
        let command = command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", stage.path(""));
        let mut bash = command.env("BANDOG_STORE", stage.store()).spawn(pts).unwrap();
        let keys = Arc::new(pty);
        let screen = Arc::clone(&keys);
        let path = stage.path("screen");
        let mut copy = File::create(&path).unwrap();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = (&*screen).read(&mut buffer) {
                copy.write_all(&buffer[..length]).unwrap();
            }
        });
        let shown = || std::fs::read_to_string(&path).unwrap_or_default();
        let sign = if waiting { "waited " } else { "ready" };
        until("it runs or waits", || shown().contains(sign).then_some(()));
        (&*keys).write_all(b"\x03").unwrap();
        until("the end", || bash.try_wait().unwrap());
        reader.join().unwrap();
        assert!(!shown().contains("afterwards"), "{:?}", shown());
        drop(holder);
    }
}
