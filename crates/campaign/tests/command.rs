//! The command itself: its help, its words, and that an interrupt leaves nothing behind.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use common::campaign;
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn help_names_every_scenario() {
    let output = campaign("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for scenario in ["kill", "head", "stop", "lockset", "fifo", "deaf", "healthy", "lead", "holds", "list", "all"] {
        assert!(text.contains(&format!("\n  {scenario} ")), "{text}");
    }
    assert!(!text.contains("\n  worker"), "what only scenarios use is not shown: {text}");
}

#[test]
fn an_unknown_scenario_is_refused() {
    let output = campaign("flood").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_interrupt_ends_servers_and_workers() {
    if bandog_rig::is_missing() {
        return;
    }
    let mut command = campaign("stop --lanes=4");
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let children = until_one_is_stopped(&process);
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(130));
    let alive: Vec<_> = children.iter().filter(|id| stat(id).is_some()).collect();
    assert!(alive.is_empty(), "{alive:?} of {children:?}");
    let mine = format!("bandog-store-{}-", process.id());
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let left: Vec<_> = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&mine)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The children of a process, once one of them is stopped.
fn until_one_is_stopped(process: &Child) -> Vec<String> {
    loop {
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let stats = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let stats = stats.filter_map(|id| stat(&id).map(|(state, parent)| (id, state, parent)));
        let children: Vec<_> = stats.filter(|(.., parent)| *parent == process.id().to_string()).collect();
        if children.iter().any(|(_, state, _)| state == "T") {
            return children.into_iter().map(|(id, ..)| id).collect();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// State and parent of a process that lives.
fn stat(id: &str) -> Option<(String, String)> {
    let text = fs::read_to_string(Path::new("/proc").join(id).join("stat")).ok()?;
    let mut words = text.rsplit(')').next()?.split_whitespace().map(str::to_owned);
    words.next().zip(words.next()).filter(|(state, _)| state != "Z")
}
