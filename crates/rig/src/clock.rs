//! A wall clock that tests move, for a real server: a library that is preloaded and adds what a file says. Linux, with a C compiler.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const SOURCE: &str = include_str!("clock.c");

/// The clock of one server; it goes on as long as this lives.
#[derive(Debug)]
pub struct WallClock {
    directory: PathBuf,
}

impl WallClock {
    /// A clock that shows the time, or nothing, said loudly, where none can be made.
    pub fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("bandog-clock-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let clock = Self { directory };
        clock.set(0);
        std::fs::write(clock.directory.join("clock.c"), SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o", "clock.so", "clock.c"]).current_dir(&clock.directory);
        let made = cfg!(target_os = "linux") && compiler.status().is_ok_and(|status| status.success());
        if !made {
            eprintln!("!!! SKIPPED: a server's clock can only be moved on Linux, and with a C compiler (cc)");
        }
        made.then_some(clock)
    }

    /// Moves it: so many seconds from the right time.
    pub fn set(&self, seconds: i64) {
        // In place: a running server has the file mapped, and one that became shorter would end it.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(self.directory.join("seconds"));
        file.unwrap().write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("LD_PRELOAD", self.directory.join("clock.so")), ("BANDOG_CLOCK", self.directory.join("seconds"))]
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}
