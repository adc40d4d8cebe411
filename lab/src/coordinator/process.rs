//! One process of a contender: started, made ready, let go, asked for its result, and ended by its own id.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use peers::clock::now;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Line>,
    complaints: Receiver<Line>,
}

/// What it said, and when.
pub(crate) type Line = (u64, String);

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
        self.word("ready", within).map(drop)
    }

    /// Waits for a word, and tells when it was said.
    pub(crate) fn word(&self, word: &str, within: Duration) -> Result<u64, Trouble> {
        let (at, line) = self.line(within)?;
        match line.strip_prefix("lacks ") {
            Some(lack) => Err(Trouble::Lacks(lack.to_owned())),
            None if line == word => Ok(at),
            None => Err(Trouble::Failed(format!("not {word}, but {line:?}"))),
        }
    }

    pub(crate) fn go(&mut self) {
        // One that has ended is noticed when its result is missing.
        let _ = self.input.write_all(b"go\n");
    }

    pub(crate) fn line(&self, within: Duration) -> Result<Line, Trouble> {
        self.next(within)?.ok_or_else(|| self.trouble(&format!("no answer within {} s", within.as_secs())))
    }

    /// What it says next, if it does so in that time.
    pub(crate) fn next(&self, within: Duration) -> Result<Option<Line>, Trouble> {
        match self.lines.recv_timeout(within) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.trouble("it ended without an answer")),
        }
    }

    fn trouble(&self, what: &str) -> Trouble {
        Trouble::Failed(format!("{what}; {}", self.last_words()))
    }

    /// The first line that speaks of an error, or the last.
    fn last_words(&self) -> String {
        let said: Vec<String> = self.complaints.try_iter().map(|(_, line)| line).collect();
        let telling = said.iter().find(|line| line.contains("rror") || line.contains("xception"));
        let words = telling.or_else(|| said.last()).map_or("it said nothing", String::as_str);
        words.replace('|', " ").chars().take(300).collect()
    }
}

/// Keeps all threads of a process on one processor; new ones inherit it.
pub(crate) fn pin(process: u32, processor: usize) -> Result<(), Trouble> {
    let mut only = CpuSet::new();
    only.set(processor);
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for thread in threads.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw)) {
        match sched_setaffinity(Some(thread), &only) {
            // It may have ended meanwhile.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(Trouble::Failed(format!("it cannot be kept on processor {processor}: {error}"))),
        }
    }
    Ok(())
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(source: impl Read + Send + 'static) -> Receiver<Line> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        BufReader::new(source).lines().map_while(Result::ok).try_for_each(|line| send.send((now(), line))).is_ok()
    });
    receive
}
