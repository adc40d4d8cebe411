//! Who takes part, how each is started, and whether it could be installed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// On which side somebody stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Baseline,
    Peer,
}

/// One contender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) id: &'static str,
    pub(crate) label: &'static str,
    pub(crate) side: Side,
    /// The part of the installation that it needs: `rust`, `java`, `go`, `python` or `node`.
    pub(crate) language: &'static str,
}

const fn row(id: &'static str, label: &'static str, side: Side, language: &'static str) -> Contender {
    Contender { id, label, side, language }
}

pub(crate) const ALL: [Contender; 27] = [
    row("bandog", "bandog", Side::Ours, "rust"),
    row("bandog-fair", "bandog, fair", Side::Ours, "rust"),
    row("bandog-dropped", "bandog, guards dropped", Side::Ours, "rust"),
    row("raw", "baseline: raw RESP, same scripts", Side::Baseline, "rust"),
    row("raw-awake", "baseline: raw RESP, never asleep", Side::Baseline, "rust"),
    row("pipelined", "baseline: raw RESP, pipelined", Side::Baseline, "rust"),
    row("bare", "baseline: redis-rs, same scripts", Side::Baseline, "rust"),
    row("push", "baseline: publish → push", Side::Baseline, "rust"),
    row("push-turns", "baseline: push after turns", Side::Baseline, "rust"),
    row("push-raw-each", "baseline: raw publish → push", Side::Baseline, "rust"),
    row("push-raw", "baseline: raw push after turns", Side::Baseline, "rust"),
    row("least-each", "baseline: the least lock", Side::Baseline, "rust"),
    row("least", "baseline: the least lock after turns", Side::Baseline, "rust"),
    row("raw-line", "baseline: raw RESP, same scripts, in line", Side::Baseline, "rust"),
    row("flock", "baseline: flock(1)", Side::Baseline, "rust"),
    row("flock-syscall", "baseline: flock(2)", Side::Baseline, "rust"),
    row("tokio", "baseline: tokio Mutex, RwLock", Side::Baseline, "rust"),
    row("rslock", "rslock (Rust)", Side::Peer, "rust"),
    row("rlock", "rlock (Rust)", Side::Peer, "rust"),
    row("async-redis-lock", "async-redis-lock (Rust)", Side::Peer, "rust"),
    row("redisson", "Redisson RLock (Java)", Side::Peer, "java"),
    row("redisson-fair", "Redisson fair lock (Java)", Side::Peer, "java"),
    row("redisson-rw", "Redisson read-write lock (Java)", Side::Peer, "java"),
    row("redsync", "redsync (Go)", Side::Peer, "go"),
    row("redis-py", "redis-py Lock (Python)", Side::Peer, "python"),
    row("python-redis-lock", "python-redis-lock (Python)", Side::Peer, "python"),
    row("redlock", "redlock (Node)", Side::Peer, "node"),
];

pub(crate) fn find(id: &str) -> Option<Contender> {
    ALL.into_iter().find(|contender| contender.id == id)
}

/// Whether it promises that whoever asked first holds first.
pub(crate) fn keeps_the_line(id: &str) -> bool {
    id.ends_with("-fair") || id == "raw-line"
}

/// Where `lab/run` has put everything.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    pub(crate) sources: PathBuf,
    pub(crate) work: PathBuf,
}

impl Installed {
    /// Why a contender cannot start, if it cannot: the last line of its installation.
    pub(crate) fn trouble(&self, contender: Contender) -> Option<String> {
        let said = std::fs::read_to_string(self.work.join(format!("{}.failed", contender.language))).ok()?;
        Some(format!("not installed: {}", said.trim()))
    }

    pub(crate) fn command(&self, contender: Contender) -> Command {
        match contender.language {
            "java" => {
                let classes = self.work.join("java");
                let path = format!("{}:{}/dependency/*", classes.join("classes").display(), classes.display());
                program(Path::new("java"), &["-cp", &path, "Contender"])
            }
            "go" => program(&self.work.join("go/contender"), &[]),
            "python" => self.script(&self.work.join("python/bin/python3"), "python/contender.py"),
            "node" => self.script(Path::new("node"), "node/contender.mjs"),
            _ => {
                let own = std::env::current_exe().unwrap_or_default();
                program(&own.with_file_name("contender"), &[])
            }
        }
    }

    fn script(&self, interpreter: &Path, script: &str) -> Command {
        program(interpreter, &[&self.sources.join(script).to_string_lossy()])
    }
}

fn program(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words);
    command
}
