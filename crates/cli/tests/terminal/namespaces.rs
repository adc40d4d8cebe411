//! The wrapper in a PID namespace that was entered from outside: some of its kin have no name in there.

use std::process::{Command, Stdio};

use crate::hold::Run;
use crate::pty::Screen;

/// How to get into a new namespace here, if at all. As root, or as the root of a namespace of users.
fn way_in() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [&["-pf", "--mount-proc"], &["-Urpf", "--mount-proc"]];
    let leads = |way: &&&[&str]| {
        let tried = Command::new("unshare").args(**way).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let way = WAYS.iter().find(leads).copied();
    if way.is_none() {
        eprintln!("!!! SKIPPED: unshare makes no PID namespace here");
    }
    way
}

#[test]
fn a_wrapper_with_a_terminal_of_its_own_beside_kin_from_outside() {
    let Some(way) = way_in() else { return };
    let this = std::env::current_exe().unwrap();
    let test = "jobs::without_a_shell_nobody_could_say_fg_so_ctrl_z_does_not_stop_it";
    let inside = Command::new("unshare").args(way).arg(this).args(["--exact", test]).output().unwrap();
    let said = String::from_utf8_lossy(&inside.stdout);
    assert!(inside.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_wrapper_whose_group_is_outside_leaves_the_terminal_alone() {
    let Some(way) = way_in() else { return };
    let run = Run::new();
    std::fs::write(run.file("writer"), "echo written; exit 7").unwrap();
    let mut inside = run.command("unshare");
    inside.args(way).arg(crate::hold::hold()).args(["--", "sh"]).arg(run.file("writer"));
    let mut screen = Screen::new(inside);
    screen.expect("written");
    assert_eq!(screen.leader.wait().unwrap().code(), Some(7), "{}", screen.unseen());
}
