//! `dflock 9`: a lock that lives as long as an open file, in the idioms of shells that flock(1) has taught people.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::running::{Running, until};
use crate::stage::{Line, Stage};

/// A script that finds the command as `$F`.
fn script<'a>(stage: &'a Stage, text: &str) -> Line<'a> {
    // Makes the link.
    let _ = stage.dflock("");
    stage.shell(text).env("F", &stage.path("dflock").display().to_string())
}

/// A script that holds the lock of `file` by a descriptor until its standard input is closed.
fn hold<'a>(stage: &'a Stage, options: &str) -> Running<'a> {
    let text = format!("exec 9> file; \"$F\" {options} 9 || exit; echo ready $$; read _; echo done");
    let holds = script(stage, &text).piped().start();
    holds.await_out("ready");
    holds
}

fn is_busy(stage: &Stage) -> bool {
    let outcome = stage.dflock("-n file true").run().silent();
    assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
    outcome.code == Some(1)
}

/// The keepers of locks of this stage.
fn keepers(stage: &Stage) -> Vec<Pid> {
    let store = format!("--store={}", stage.store());
    let is_ours = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("\0__keep\0") && line.contains(&store)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_ours(*pid)).filter_map(Pid::from_raw).collect()
}

#[test]
fn the_lock_is_held_until_the_block_of_the_shell_ends() {
    let stage = Stage::new();
    let block = "( \"$F\" 9 || exit; echo ready; read _; : ) 9> file; echo after; read _; :";
    let mut block = script(&stage, block).piped().start();
    block.await_out("ready");
    assert!(is_busy(&stage));
    block.feed("\n");
    block.await_out("after");
    until("it is free while the shell goes on", || (!is_busy(&stage)).then_some(()));
    block.finish().is(0).silent();
}

#[test]
fn a_busy_descriptor_is_1_and_a_wait_is_served() {
    let stage = Stage::new();
    let held = hold(&stage, "");
    script(&stage, "( \"$F\" -n 9 || exit 7; echo in ) 9> file").run().is(7).silent().prints("");
    script(&stage, "\"$F\" -n -E 9 9 9< file").run().is(9).silent();
    script(&stage, "\"$F\" -w 0.1 9 9< file").run().is(1).silent();
    let next = script(&stage, "( \"$F\" 9; echo in ) 9> file").start();
    let name = stage.path("file").display().to_string();
    until("it waits", || {
        let shown = stage.line("show --json").arg(&name).run().is(0).json();
        (shown["waiters"].as_array()?.len() == 1).then_some(())
    });
    assert!(!next.is_over());
    held.finish().is(0).silent();
    next.wait().is(0).silent().prints("in\n");
}

#[test]
fn files_and_descriptors_exclude_each_other() {
    let stage = Stage::new();
    let held = stage.dflock("file").piped().words("sh -c").arg("echo ready; read _; :").start();
    held.await_out("ready");
    script(&stage, "\"$F\" -n 9 9> file").run().is(1);
    held.finish().is(0).done();
    script(&stage, "\"$F\" -n 9 9> file").run().is(0);
}

#[test]
fn sharers_share_and_a_lock_is_changed() {
    let stage = Stage::new();
    let text = "exec 9> file; \"$F\" -s 9; echo shared; read _; \"$F\" -x -n 9; echo $?; read _; \"$F\" -x -n 9; echo $?; read _; :";
    let mut one = script(&stage, text).piped().start();
    one.await_out("shared");
    let two = hold(&stage, "-s -n");
    assert!(is_busy(&stage), "sharers keep others out");
    one.feed("\n");
    one.await_out("1");
    two.finish().is(0).done();
    one.feed("\n");
    one.await_out("0");
    script(&stage, "\"$F\" -s -n 9 9< file").run().is(1);
    one.finish().is(0).silent();
}

#[test]
fn to_lock_again_what_is_locked_is_nothing() {
    let stage = Stage::new();
    let text = "exec 9> file; for i in 1 2 3; do \"$F\" -n 9 || exit; done; \"$F\" --verbose -n 9";
    let outcome = script(&stage, text).run().is(0).silent();
    assert!(outcome.out.starts_with("dflock: getting lock took 0.000000 seconds"), "{outcome:?}");
}

#[test]
fn unlocking_frees_it_at_once_while_the_file_stays_open() {
    let stage = Stage::new();
    let text = "exec 9<> file; for i in 1 2 3 4 5; do \"$F\" -n 9 && \"$F\" -u 9 && \"$F\" -n file true || exit; done; \"$F\" -u 9";
    script(&stage, text).run().is(0).silent();
    until("no keeper is left", || keepers(&stage).is_empty().then_some(()));
}

/// A child that has the file keeps the lock, as with flock(1): that is what `-o` and `9>&-` are for.
#[test]
fn a_child_that_has_the_file_keeps_the_lock() {
    let stage = Stage::new();
    // A shell gives its children in the background no standard input.
    let text = "exec 9> file 8<&0; \"$F\" 9; { echo ready $$; read _ <&8; } & exec 9>&-; wait";
    let shell = script(&stage, text).piped().start();
    shell.await_out("ready");
    assert!(is_busy(&stage));
    shell.finish().is(0).silent();
    until("it is free", || (!is_busy(&stage)).then_some(()));
}

#[test]
fn a_killed_shell_holds_nothing() {
    let stage = Stage::new();
    let held = hold(&stage, "");
    assert!(is_busy(&stage));
    held.signal(Signal::KILL);
    // Long before its lease could end.
    until("it is free", || (!is_busy(&stage)).then_some(()));
}

#[test]
fn signals_of_the_terminal_do_not_end_the_lock() {
    let stage = Stage::new();
    let held = hold(&stage, "");
    let keeper = keepers(&stage)[0];
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        kill_process(keeper, signal).unwrap();
    }
    assert!(is_busy(&stage));
    held.finish().is(0).silent();
    until("it is free", || (!is_busy(&stage)).then_some(()));
}

#[test]
fn it_outlives_its_lease() {
    let stage = Stage::new();
    let text = "exec 9> file; \"$F\" 9 || exit; echo ready; read _; :";
    let held = script(&stage, text).env("BANDOG_LEASE", "400ms").piped().start();
    held.await_out("ready");
    let name = stage.path("file").display().to_string();
    until("it is older than three leases", || {
        let shown = stage.line("show --json").arg(&name).run().is(0).json();
        shown["holders"][0]["held_ms"].as_u64().filter(|held| *held > 1200)
    });
    held.finish().is(0).silent();
}

/// Nobody can be stopped, so it is told, and the shell goes on.
#[test]
fn a_lost_lock_is_told() {
    let stage = Stage::new();
    let text = "exec 9> file; \"$F\" 9 || exit; echo ready; read _; :";
    let held = script(&stage, text).env("BANDOG_LEASE", "1s").piped().start();
    held.await_out("ready");
    stage.removed_store();
    held.await_err("dflock: ");
    held.finish().is(0).says("/file");
}

#[test]
fn a_file_that_is_only_read_and_a_folder_can_be_locked() {
    let stage = Stage::new();
    let file = stage.write("file", "");
    let mut mode = fs::metadata(&file).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(&file, mode).unwrap();
    for open in ["9< file", "9< ."] {
        let name = open.trim_start_matches("9< ");
        let text = format!("( \"$F\" -n 9 || exit; \"$F\" -n {name} true; echo $? ) {open}");
        script(&stage, &text).run().is(0).silent().prints("1\n");
        until("it is free", || (stage.dflock(&format!("-n {name} true")).run().code == Some(0)).then_some(()));
    }
}

#[test]
fn descriptor_that_cannot_be_locked_is_code_65_and_not_busy() {
    let stage = Stage::new();
    for options in ["", "-n", "-u"] {
        script(&stage, &format!("\"$F\" {options} 9")).run().is(65).says("dflock: 9: Bad file descriptor");
    }
    script(&stage, "echo | \"$F\" 0").run().is(65).says("dflock: 0: pipe:[");
    script(&stage, "exec 9> file; rm file; \"$F\" 9").run().is(65).says("is no file that others could lock");
}

#[test]
fn on_another_store_it_says_what_to_write_instead() {
    let Some(stage) = Stage::on_redis(&[]) else { return };
    let told = script(&stage, "\"$F\" -n 9 9> file").run().is(64);
    assert!(told.err.starts_with("dflock: a file descriptor is locked in a SQLite file only"), "{told:?}");
    let file = stage.path("file");
    told.says(&format!("write dflock {} COMMAND, or bandog acquire --keep $$", file.display()));
}

#[test]
fn output_that_is_read_to_its_end_is_not_held_up() {
    let stage = Stage::new();
    let text = "exec 9> file; out=$(\"$F\" 9 2>&1); echo \"read $out\"; \"$F\" -n file true; echo $?";
    script(&stage, text).run().is(0).prints("read \n1\n");
}

#[test]
fn a_command_runs_under_the_lock_of_a_descriptor() {
    let stage = Stage::new();
    let text = "exec 9> file; \"$F\" --fd 9 sh -c 'echo $1; exit 5' sh hello; echo $?; \"$F\" -n file true; echo $?";
    script(&stage, text).run().is(0).silent().prints("hello\n5\n1\n");
    let text = "exec 9> file; \"$F\" --fd 9 -c 'exit 6'; echo $?; \"$F\" --close --fd 9 \"$F\" -n --fd 9 true; echo $?";
    script(&stage, text).run().is(0).says("dflock: 9: Bad file descriptor").prints("6\n65\n");
    script(&stage, "\"$F\" --fd 9 no-such-command 9> file").run().is(127).says("dflock: no-such-command: ");
}

/// Many shells, one after the other in the block, and none beside another.
#[test]
fn no_two_are_in_the_block_at_once() {
    let stage = Stage::new();
    let text = "for i in 1 2 3 4 5; do ( \"$F\" 9 || exit; mkdir inside || echo clash; rmdir inside; echo was in ) 9> file; done";
    let all: Vec<_> = (0..4).map(|_| script(&stage, text).start()).collect();
    for one in all {
        one.wait().is(0).silent().prints(&"was in\n".repeat(5));
    }
}
