//! Playing scenarios from outside, as people do.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "parts of tests fail as tests do, and not every test uses every part"
)]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use serde_json::Value;

/// The exit code and the report; `None`, said loudly, where there is no server.
pub(crate) type Played = Option<(i32, Value)>;

/// Scenarios that are played at once, by name: they sleep most of their time, and tests have only a thread per core.
#[derive(Debug)]
pub(crate) struct AtOnce(Mutex<BTreeMap<&'static str, JoinHandle<Played>>>);

impl AtOnce {
    /// Starts all of these, each with more words.
    pub(crate) fn start(all: &[&'static str], more: &'static str) -> Self {
        let name = |words: &'static str| words.split(' ').next().unwrap();
        let start = |words: &'static str| thread::spawn(move || play(&format!("{words} {more}")));
        Self(Mutex::new(all.iter().map(|words| (name(words), start(words))).collect()))
    }

    /// What came of one of them. Asked for once.
    pub(crate) fn played(&self, name: &str) -> Played {
        let player = self.0.lock().unwrap().remove(name).unwrap();
        player.join().unwrap()
    }
}

pub(crate) fn campaign(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bandog-campaign"));
    command.args(words.split(' '));
    command
}

fn play(words: &str) -> Played {
    if bandog_rig::is_missing() {
        return None;
    }
    let output = campaign(words).arg("--json").stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words}: {error}: {text:?}"));
    Some((output.status.code().unwrap(), report))
}
