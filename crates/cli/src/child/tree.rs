//! Kills everything that came from this process, however it tried to get away. Used by the supervisor, and by the
//! wrapper when the supervisor died. Both are subreapers: whoever loses its parent becomes their child.
//!
//! Invariant: no signal goes to a process that is not a descendant. Direct children keep their ids until this process
//! reaps them; deeper ones are pinned with a pidfd and looked at again before the signal is sent.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal, wait,
};

/// How often the wrapper looks again while it waits for killed processes to go.
const PAUSE: Duration = Duration::from_millis(1);
/// How often at most: killed processes that are still there then hang in the kernel or belong to somebody else.
const ROUNDS: u32 = 1_000;

/// Kills `group` if it is given (its leader must not have been reaped) and then every descendant but those of `spared`.
pub(super) fn kill_all(group: Option<Pid>, spared: &[Pid]) {
    if let Some(group) = group {
        // The whole group in one stroke: nobody in it gets to fork in between. It may be gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    for child in children(getpid()).into_iter().filter(|child| !spared.contains(child)) {
        kill_below(child);
        let _ = kill_process(child, Signal::KILL);
    }
}

/// Kills every descendant but those of `spared`, and waits until they are gone, within reason.
pub(super) fn kill_and_reap_all(spared: &[Pid]) {
    for _ in 0..ROUNDS {
        kill_all(None, spared);
        while matches!(reap(), Reaped::Child(..)) {}
        if children(getpid()).iter().all(|child| spared.contains(child)) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// What is there to reap.
#[derive(Debug)]
pub(super) enum Reaped {
    /// This child ended or stopped.
    Child(Pid, WaitStatus),
    /// No child has, for now.
    Nothing,
    /// There are no children.
    Childless,
}

/// Reaps one child that ended, or notices one that stopped.
pub(super) fn reap() -> Reaped {
    match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        Ok(Some((pid, status))) => Reaped::Child(pid, status),
        Ok(None) => Reaped::Nothing,
        Err(_) => Reaped::Childless,
    }
}

/// The children of `parent`, as far as they can be seen while they come and go.
pub(super) fn children(parent: Pid) -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(parse)),
            // A kernel without these lists (CONFIG_PROC_CHILDREN), or a thread that just ended.
            Err(error) if error.kind() == ErrorKind::NotFound => return children_by_search(parent),
            Err(_) => {}
        }
    }
    found
}

/// The parent of `pid`, or `None` if there is no such process.
pub(super) fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may contain anything, parentheses too.
    parse(stat.rsplit_once(") ")?.1.split(' ').nth(1)?)
}

fn children_by_search(wanted: Pid) -> Vec<Pid> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| parse(entry.file_name().to_str()?));
    pids.filter(|pid| parent(*pid) == Some(wanted)).collect()
}

fn kill_below(above: Pid) {
    for child in children(above) {
        kill_below(child);
        let Ok(pinned) = pidfd_open(child, PidfdFlags::empty()) else { continue };
        if parent(child) == Some(above) {
            let _ = pidfd_send_signal(pinned, Signal::KILL);
        }
    }
}

fn parse(digits: &str) -> Option<Pid> {
    Pid::from_raw(digits.parse().ok().filter(|raw| *raw > 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_ways_to_find_children_agree() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(children(getpid()).contains(&pid));
        assert!(children_by_search(getpid()).contains(&pid));
        assert_eq!(parent(pid), Some(getpid()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(getpid()).contains(&pid));
        assert_eq!(parent(pid), None);
    }
}
