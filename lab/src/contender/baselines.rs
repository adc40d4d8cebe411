//! Floors without a runtime: raw requests one by one and pipelined, flock(1), and the system call beneath it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use bandog_core::name::LockName;
use bandog_redis::Value;
use bandog_rig::Raw;
use peers::clock::now;
use rustix::fs::{FlockOperation, flock};

use crate::args::Game;
use crate::baseline::Floor as Baseline;
use crate::peer::words;
use crate::plain::Plain;
use crate::stage::{Counted, begun, over, ready};
use crate::tally::Tally;

/// A connection that sends bandog's own scripts. It blocks, or, if it is to stay awake, looks for the answer without sleeping, as
/// bandog does for a moment.
pub(crate) struct RawScripts<const AWAKE: bool> {
    baseline: Baseline,
    raw: Raw,
    name: LockName,
    release: Vec<Vec<u8>>,
}

impl<const AWAKE: bool> Plain for RawScripts<AWAKE> {
    fn version() -> String {
        if AWAKE { "raw RESP, awake" } else { "raw RESP" }.to_owned()
    }

    fn open(game: &Game, name: &str) -> Result<Self, String> {
        if game.play != "pairs" {
            return Err("it waits for nobody: free locks only".to_owned());
        }
        let raw = if AWAKE { Raw::tcp_awake(game.port) } else { Raw::tcp(game.port) };
        let baseline = Baseline::new(Raw::tcp(game.port));
        Ok(Self { baseline, raw, name: LockName::new(name).map_err(words)?, release: Vec::new() })
    }

    fn acquire(&mut self) -> Result<(), String> {
        let [acquire, release] = self.baseline.words(&self.name);
        self.release = release;
        answered(self.raw.ask(&acquire))
    }

    fn release(&mut self) -> Result<(), String> {
        answered(self.raw.ask(&self.release))
    }
}

/// Whether the server took it.
pub(crate) fn answered(answer: Value) -> Result<(), String> {
    if matches!(answer, Value::Error(_)) { Err(words(answer)) } else { Ok(()) }
}

/// One connection, one batch with an acquire and a release for each task's lock.
pub(crate) fn pipelined(game: &Game) -> Result<(), String> {
    if game.play != "pairs" {
        return Err("it waits for nobody: free locks only".to_owned());
    }
    let (baseline, mut raw) = (Baseline::new(Raw::tcp(game.port)), Raw::tcp(game.port));
    let names: Result<Vec<_>, _> = (0..game.tasks).map(|task| LockName::new(game.name_of(task))).collect();
    let names = names.map_err(words)?;
    let mut tally = Tally::default();
    let mut batch = |tally: &mut Tally| {
        let asked = now();
        names.iter().flat_map(|name| baseline.words(name)).for_each(|words| raw.queue(&words));
        for answer in raw.answers() {
            answered(answer).unwrap_or_else(|error| tally.failed(error));
        }
        names.iter().for_each(|_| tally.pair.add(now() - asked));
        tally.count += names.len() as u64;
    };
    let until = now() + game.warm.as_nanos() as u64;
    while now() < until {
        batch(&mut Tally::default());
    }
    let rss_kib = ready();
    let start = begun();
    while now() < start + game.length.as_nanos() as u64 {
        batch(&mut tally);
    }
    let tallies = vec![Arc::new(Mutex::new(tally))];
    let version = "raw RESP, pipelined".to_owned();
    Counted { end: over(), version, rss_kib, start, complete: start, tallies, lost: 0 }.tell(game);
    Ok(())
}

fn file_of(name: &str, game: &Game) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("bandog-peers-{}-{}", game.port, name.replace(':', "-")))
}

/// `flock FILE cat`: held once what is written comes back, released when the input ends.
pub(crate) struct FlockCommand {
    path: std::path::PathBuf,
    child: Option<Child>,
}

impl Plain for FlockCommand {
    fn version() -> String {
        let told = Command::new("flock").arg("--version").output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&told).trim().to_owned()
    }

    fn open(game: &Game, name: &str) -> Result<Self, String> {
        Ok(Self { path: file_of(name, game), child: None })
    }

    fn acquire(&mut self) -> Result<(), String> {
        let mut command = Command::new("flock");
        command.arg("--no-fork").arg(&self.path).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(words)?;
        let (Some(input), Some(output)) = (&mut child.stdin, &mut child.stdout) else { return Err("no pipes".into()) };
        input.write_all(b"?").and_then(|()| output.read_exact(&mut [0])).map_err(words)?;
        self.child = Some(child);
        Ok(())
    }

    fn release(&mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Err("not held".to_owned()) };
        drop(child.stdin.take());
        child.wait().map(drop).map_err(words)
    }
}

/// The system call: what a lock of one machine costs.
pub(crate) struct FlockCall(File);

impl Plain for FlockCall {
    fn version() -> String {
        "flock(2)".to_owned()
    }

    fn open(game: &Game, name: &str) -> Result<Self, String> {
        File::create(file_of(name, game)).map(Self).map_err(words)
    }

    fn acquire(&mut self) -> Result<(), String> {
        flock(&self.0, FlockOperation::LockExclusive).map_err(words)
    }

    fn release(&mut self) -> Result<(), String> {
        flock(&self.0, FlockOperation::Unlock).map_err(words)
    }
}
