//! The coordinator's side of its workers: starting, telling, hearing, signalling, and an end for all of them.
//!
//! Every worker is ended: by its owner's drop, by the handler of Ctrl-C, which ends those that are stopped too, or by the
//! kernel when the thread that started it dies. A process id is signalled only while its worker is not yet reaped.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::Duty;

static OVER: AtomicBool = AtomicBool::new(false);
static ROSTER: Mutex<BTreeMap<u32, Pid>> = Mutex::new(BTreeMap::new());

/// Whether somebody interrupted.
pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::SeqCst)
}

/// Ends every worker at Ctrl-C and the like. Who waits for one hears its end, gives up, and drops its server.
pub(crate) fn end_on_signals() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    std::thread::spawn(move || {
        for _ in signals.forever() {
            OVER.store(true, Ordering::SeqCst);
            let roster = roster();
            // One that has just ended by itself cannot be killed.
            roster.values().for_each(|pid| kill_process(*pid, Signal::KILL).unwrap_or(()));
        }
    });
}

fn roster() -> std::sync::MutexGuard<'static, BTreeMap<u32, Pid>> {
    ROSTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker process. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Child,
    ear: Option<ChildStdin>,
    mouth: Option<BufReader<ChildStdout>>,
}

impl Worker {
    pub(crate) fn start(duty: &Duty) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words(duty)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut roster = roster();
        if is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut process = command.spawn()?;
        roster.insert(process.id(), Pid::from_child(&process));
        drop(roster);
        let ear = process.stdin.take();
        let mouth = process.stdout.take().map(BufReader::new);
        Ok(Self { process, ear, mouth })
    }

    pub(crate) fn tell(&mut self, line: &str) -> io::Result<()> {
        match &mut self.ear {
            Some(ear) => writeln!(ear, "{line}"),
            None => Err(wrong("told a worker whose ear is closed")),
        }
    }

    /// The next line it says; `None` when it is gone. A line that death cut off does not count.
    pub(crate) fn hear(&mut self) -> io::Result<Option<String>> {
        self.mouth.as_mut().map_or_else(|| Err(wrong("somebody else listens to this worker")), hear)
    }

    /// All that it says from now on, until it ends: for a thread of its own.
    pub(crate) fn mouth(&mut self) -> impl Iterator<Item = io::Result<String>> + Send + use<> {
        let mut mouth = self.mouth.take();
        std::iter::from_fn(move || hear(mouth.as_mut()?).transpose())
    }

    /// The numbers of the next line, which must begin with this word.
    pub(crate) fn expect(&mut self, word: &str) -> io::Result<Vec<u64>> {
        let line = self.hear()?.ok_or_else(|| wrong(format!("a worker ended before it said {word:?}")))?;
        numbers(&line, word).ok_or_else(|| wrong(format!("a worker was to say {word:?} and said {line:?}")))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn stop(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.process), Signal::STOP)?)
    }

    pub(crate) fn go_on(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.process), Signal::CONT)?)
    }

    /// SIGKILL; returns once it is dead. What it said before can still be heard.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.reap()
    }

    /// Closes its ear, and waits until it has ended; at once if it has been killed.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        drop(self.ear.take());
        self.reap()
    }

    fn reap(&mut self) -> io::Result<()> {
        if !roster().contains_key(&self.process.id()) {
            return Ok(());
        }
        // Waited for without reaping, so that the handler of Ctrl-C never signals an id that is somebody else's.
        let pid = Pid::from_child(&self.process);
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options)?;
        roster().remove(&self.process.id());
        self.process.wait().map(drop)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and there is nobody to tell.
        drop(self.process.kill());
        drop(self.reap());
    }
}

fn hear(mouth: &mut BufReader<ChildStdout>) -> io::Result<Option<String>> {
    let mut line = String::new();
    mouth.read_line(&mut line)?;
    Ok(line.ends_with('\n').then(|| line.trim_end().to_owned()))
}

/// Something went otherwise than a scenario can go on with.
pub(crate) fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

/// The numbers behind the first word of a line, if it is that word.
pub(crate) fn numbers(line: &str, word: &str) -> Option<Vec<u64>> {
    let mut words = line.split(' ');
    words.next().filter(|first| *first == word)?;
    words.map(|word| word.parse().ok()).collect()
}

fn words(duty: &Duty) -> Vec<String> {
    let named =
        |value: Option<clap::builder::PossibleValue>| value.map(|it| it.get_name().to_owned()).unwrap_or_default();
    let span = |length: std::time::Duration| humantime::format_duration(length).to_string();
    let mut words = vec!["worker".to_owned()];
    let mut add = |option: &str, value: String| words.push(format!("--{option}={value}"));
    add("role", named(duty.role.to_possible_value()));
    add("style", named(duty.style.to_possible_value()));
    add("url", duty.url.clone());
    add("lease", span(duty.lease));
    add("number", duty.number.to_string());
    add("hands", duty.hands.to_string());
    add("locks", duty.locks.to_string());
    add("rounds", duty.rounds.to_string());
    if let Some(window) = duty.window {
        add("window", span(window));
    }
    if let Some(how) = duty.broken {
        add("broken", named(how.to_possible_value()));
    }
    if let Some(socket) = &duty.resource {
        add("resource", socket.display().to_string());
    }
    words.extend(duty.fenced.then(|| "--fenced".to_owned()));
    words
}
