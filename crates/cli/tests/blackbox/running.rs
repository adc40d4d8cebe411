//! A command that runs, and how it ended.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::time::Duration;

use bandog::Clock;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::stage::Stage;

/// Longer than anything takes on the slowest machine: only a test that hangs gets there.
const GUARD: Duration = Duration::from_secs(90);

/// Looks until there is an answer.
pub(crate) fn until<T>(what: impl fmt::Display, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Clock::system().now();
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(Clock::system().now().since(began) < GUARD, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Seconds since the machine started, as `/proc/uptime` has them, sleep included.
pub(crate) fn uptime() -> f64 {
    Duration::from_nanos(Clock::system().now().nanos()).as_secs_f64()
}

/// A command that was started. Dropped, it is killed, and all that came from it.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) out: PathBuf,
    pub(crate) err: PathBuf,
    pub(crate) shown: Vec<String>,
}

impl<'a> Running<'a> {
    pub(crate) fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Waits until it has said `text` on standard output, in a whole line.
    pub(crate) fn await_out(&self, text: &str) -> String {
        self.await_line(text, || self.out())
    }

    /// The same on standard error.
    pub(crate) fn await_err(&self, text: &str) -> String {
        self.await_line(text, || self.err())
    }

    fn await_line(&self, text: &str, said: impl Fn() -> String) -> String {
        until(format_args!("{text:?} of {:?}", self.shown), || {
            // Asked first: what it said before its end is there to be read.
            let is_over = self.is_over();
            let line = whole_line(&said(), text);
            assert!(line.is_some() || !is_over, "{:?} ended before {text:?}: {}{}", self.shown, self.out(), self.err());
            line
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options).unwrap().is_some()
    }

    /// The process id of a command that said `ready` and its number.
    pub(crate) fn inner(&self) -> i32 {
        self.await_out("ready").trim_start_matches("ready ").parse().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn feed(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        match stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()) {
            // Whoever needs no input may have ended by now.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
    }

    /// Closes its standard input and waits for its end.
    pub(crate) fn finish(mut self) -> Outcome<'a> {
        self.stdin = None;
        self.wait()
    }

    pub(crate) fn wait(mut self) -> Outcome<'a> {
        let status = until(format_args!("the end of {:?}", self.shown), || self.child.try_wait().unwrap());
        Outcome { stage: self.stage, code: status.code(), out: self.out(), err: self.err(), shown: self.shown.clone() }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whole_line(said: &str, text: &str) -> Option<String> {
    let (whole, _) = said.rsplit_once('\n')?;
    whole.lines().find(|line| line.contains(text)).map(str::to_owned)
}

/// How a command ended.
pub(crate) struct Outcome<'a> {
    stage: &'a Stage,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    shown: Vec<String>,
}

impl fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, out, err, shown, .. } = self;
        write!(f, "{shown:?} ended with {code:?}\n--- out\n{out}\n--- err\n{err}\n---")
    }
}

impl<'a> Outcome<'a> {
    /// That of a command whose terminal showed `out`.
    pub(crate) fn new(stage: &'a Stage, code: Option<i32>, out: String, shown: Vec<String>) -> Self {
        Self { stage, code, out, err: String::new(), shown }
    }
}

impl Outcome<'_> {
    /// It ended with this code.
    #[track_caller]
    pub(crate) fn is(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stage.codes.borrow_mut().push(code);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert_eq!(self.out, text, "{self:?}");
        self
    }

    /// Printed `text` in the end, after a line that starts with `first`.
    #[track_caller]
    pub(crate) fn prints_after(self, first: &str, text: &str) -> Self {
        assert!(self.out.starts_with(first) && self.out.ends_with(text), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.err, "", "{self:?}");
        self
    }

    /// The answer, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Nothing more to say about it.
    pub(crate) fn done(self) {}

    /// The messages, each a JSON object with an event and a lock.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let events: Vec<Value> = self.err.lines().map(read).collect();
        for event in &events {
            assert!(event["event"].is_string(), "no event in {event}");
            assert!(event.get("lock").is_some(), "no lock in {event}");
        }
        events
    }

    /// The one message of this event.
    #[track_caller]
    pub(crate) fn event(&self, name: &str) -> Value {
        let events = self.events();
        let found: Vec<&Value> = events.iter().filter(|event| event["event"] == name).collect();
        assert_eq!(found.len(), 1, "{name} in {self:?}");
        found[0].clone()
    }
}
