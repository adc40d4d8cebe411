//! Runs the example `hold` and finds every process that came from it. Used by the tests of the process side.
//!
//! Each run has a mark in its environment, which everything it starts inherits: what carries the mark and is no zombie
//! is alive. Whatever is left of a run at the end of its test is killed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bandog::{Clock, Moment};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The example's path. It is built with the tests, unless only some of them are asked for.
pub(crate) fn hold() -> PathBuf {
    static CHECKED: Once = Once::new();
    let test = std::env::current_exe().unwrap();
    let hold = test.parent().and_then(Path::parent).unwrap().join("examples/hold");
    CHECKED.call_once(|| {
        let built = fs::metadata(&hold)
            .and_then(|file| file.modified())
            .expect("examples/hold; cargo build --examples makes it");
        let sources = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/child")).into_iter().flatten().flatten();
        let newest = sources.filter_map(|file| file.metadata().ok()?.modified().ok()).max();
        assert!(newest.is_none_or(|newest| newest <= built), "examples/hold is old; cargo build --examples");
    });
    hold
}

pub(crate) fn now() -> Moment {
    Clock::system().now()
}

pub(crate) fn pid(raw: i32) -> Pid {
    Pid::from_raw(raw).unwrap()
}

/// Looks again and again until `look` finds something, and panics with `what` if that takes too long.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < deadline, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One letter for what a process does, as `ps` has it; `None` if it is gone.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The process group of a process; 0 if it has no name in this PID namespace.
pub(crate) fn group(of: i32) -> i32 {
    nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(of))).unwrap().as_raw()
}

/// The children of a process.
pub(crate) fn children(of: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    list.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// A mark, a directory and what is left running.
#[derive(Debug)]
pub(crate) struct Run {
    mark: String,
    dir: PathBuf,
}

impl Run {
    pub(crate) fn new() -> Self {
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&mark);
        fs::create_dir_all(&dir).unwrap();
        Self { mark, dir }
    }

    /// A file of this run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// `program` with the mark, the directory as `$DIR` and the example as `$HOLD`.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("HOLD_MARK", &self.mark).env("DIR", &self.dir).env("HOLD", hold());
        command
    }

    /// The example with these options and a log.
    pub(crate) fn hold(&self, options: &[&str], script: &[&str]) -> Command {
        let mut command = self.command(hold());
        command.args(options).arg("--log").arg(self.file("log")).arg("--").args(script);
        command
    }

    /// Starts the example and waits until the command has printed a line.
    pub(crate) fn start(&self, options: &[&str], script: &str) -> Running {
        let mut wrapper = self.hold(options, &["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(wrapper.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let pid = i32::try_from(wrapper.id()).unwrap();
        let supervisor = *children(pid).first().expect("a supervisor");
        let command = eventually("the start in the log", || self.logged("started ")?.split(' ').next()?.parse().ok());
        Running { wrapper, output, first: first.trim_end().to_owned(), pid, supervisor, command }
    }

    /// The rest of the first line of the log that begins like that.
    pub(crate) fn logged(&self, beginning: &str) -> Option<String> {
        let log = fs::read_to_string(self.file("log")).unwrap_or_default();
        // A line may be half written.
        log.rsplit_once('\n')?.0.lines().find_map(|line| line.strip_prefix(beginning)).map(str::to_owned)
    }

    /// When the first lease ended.
    pub(crate) fn until(&self) -> Moment {
        let line = self.logged("started ").unwrap();
        Moment::from_nanos(line.rsplit_once(' ').unwrap().1.parse().unwrap())
    }

    /// A time that `hold stamp` wrote to a file of this run.
    pub(crate) fn stamp(&self, name: &str) -> Moment {
        let text = fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Moment::from_nanos(text.trim().parse().unwrap())
    }

    /// Every living process with the mark.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let wanted = format!("HOLD_MARK={}\0", self.mark).into_bytes();
        let pids =
            fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let has_mark = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(wanted.len()).any(|window| window == wanted)
        };
        pids.filter(has_mark).filter(|pid| is_alive(*pid)).collect()
    }

    /// Waits until nobody is left, and says when.
    pub(crate) fn nobody_left(&self) -> Moment {
        eventually(&format!("nobody left of {:?}", self.alive()), || {
            let seen = now();
            // A process in the middle of an exec has no environment for a moment: one look is not enough.
            (0..3).all(|_| self.alive().is_empty()).then_some(seen)
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        while let [first, ..] = self.alive()[..] {
            let _ = kill_process(pid(first), Signal::KILL);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A wrapper with a running command.
#[derive(Debug)]
pub(crate) struct Running {
    wrapper: Child,
    output: BufReader<ChildStdout>,
    /// The first line of output.
    pub(crate) first: String,
    pub(crate) pid: i32,
    pub(crate) supervisor: i32,
    pub(crate) command: i32,
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(self.pid), signal).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for the wrapper; also returns the rest of the output.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = self.ended();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (status, rest)
    }

    /// Only the exit code, without the output: somebody else may still have it open.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.ended().code()
    }

    fn ended(&mut self) -> ExitStatus {
        eventually("the wrapper ends", || self.wrapper.try_wait().unwrap())
    }
}
