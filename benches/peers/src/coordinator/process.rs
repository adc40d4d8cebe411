//! One process of a contender: started, made ready, let go, asked for its result, and ended by its own id.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    complaints: Receiver<String>,
}

/// Why there is no result.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// The contender says that it has no such thing.
    Lacks(String),
    Failed(String),
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Result<Self, Trouble> {
        let name = format!("{command:?}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Trouble::Failed(format!("{name} does not start: {error}")))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Trouble::Failed("no pipes".to_owned()));
        };
        Ok(Self { child, input, lines: lines(output), complaints: lines(errors) })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ready(&self, within: Duration) -> Result<(), Trouble> {
        match self.line(within)? {
            line if line == "ready" => Ok(()),
            line => Err(line.strip_prefix("lacks ").map_or_else(
                || Trouble::Failed(format!("not ready, but {line:?}")),
                |lack| Trouble::Lacks(lack.to_owned()),
            )),
        }
    }

    pub(crate) fn go(&mut self) {
        // One that has ended is noticed when its result is missing.
        let _ = self.input.write_all(b"go\n");
    }

    pub(crate) fn line(&self, within: Duration) -> Result<String, Trouble> {
        self.lines.recv_timeout(within).map_err(|error| {
            let what = match error {
                RecvTimeoutError::Timeout => format!("no answer within {} s", within.as_secs()),
                RecvTimeoutError::Disconnected => "it ended without an answer".to_owned(),
            };
            Trouble::Failed(format!("{what}; {}", self.last_words()))
        })
    }

    /// The first line that speaks of an error, or the last.
    fn last_words(&self) -> String {
        let said: Vec<String> = self.complaints.try_iter().collect();
        let telling = said.iter().find(|line| line.contains("rror") || line.contains("xception"));
        let words = telling.or_else(|| said.last()).map_or("it said nothing", String::as_str);
        words.replace('|', " ").chars().take(300).collect()
    }

    /// Keeps all its threads on one processor.
    pub(crate) fn pin(&self, processor: usize) {
        pin(self.id(), processor);
    }
}

/// Keeps all threads of a process on one processor; new ones inherit it.
pub(crate) fn pin(process: u32, processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for thread in threads.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw)) {
        // A thread may have ended meanwhile.
        let _ = sched_setaffinity(Some(thread), &only);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        BufReader::new(source).lines().map_while(Result::ok).try_for_each(|line| send.send(line)).is_ok()
    });
    receive
}
