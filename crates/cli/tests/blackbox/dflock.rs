//! Under the name `dflock` it takes the command lines of flock(1), with its codes.

use std::os::unix::fs::symlink;

use crate::running::Running;
use crate::stage::Stage;

/// Holds the lock of `file`.
fn hold<'a>(stage: &'a Stage, line: &str) -> Running<'a> {
    let holds = stage.dflock(line).piped().words("sh -c").arg("echo ready $$; read _").start();
    holds.await_out("ready");
    holds
}

#[test]
fn busy_is_1_or_what_was_asked_for() {
    let stage = Stage::new();
    let _held = hold(&stage, "file");
    for line in [
        "-n file true",
        "--nonblock file true",
        "--nb file true",
        "-w 0.5 file true",
        "--timeout 0.5 file true",
        "-w 0 file true",
    ] {
        stage.dflock(line).run().is(1);
    }
    stage.dflock("-n -E 9 file true").run().is(9);
    stage.dflock("-n --conflict-exit-code 0 file true").run().is(0);
    stage.dflock("-n other true").run().is(0);
}

#[test]
fn codes_of_the_command_are_passed_on() {
    let stage = Stage::new();
    stage.dflock("file sh -c").arg("exit 42").run().is(42).silent();
    stage.dflock("file sh -c").arg("kill -TERM $$").run().is(143);
    stage.dflock("file no-such-command-anywhere").run().is(127);
    stage.dflock("file .").run().is(126);
}

#[test]
fn a_text_is_run_by_the_shell() {
    let stage = Stage::new();
    stage.dflock("file -c").arg("echo $((1+1)); exit 3").run().is(3).prints("2\n");
    stage.dflock("file --command").arg("echo $0").env("SHELL", "/bin/bash").run().is(0).prints("/bin/bash\n");
    stage.dflock("file -c a b").run().is(64).says("-c takes exactly one text");
}

#[test]
fn options_after_the_file_belong_to_the_command() {
    let stage = Stage::new();
    stage.dflock("-n file echo -n -s --verbose").run().is(0).prints("-s --verbose");
}

#[test]
fn sharers_share_and_the_last_word_counts() {
    let stage = Stage::new();
    let _held = hold(&stage, "-s file");
    stage.dflock("-s -n file true").run().is(0);
    stage.dflock("--shared -n file true").run().is(0);
    for line in ["-n file true", "-x -n file true", "-e -n file true", "--exclusive -n file true", "-s -x -n file true"]
    {
        stage.dflock(line).run().is(1);
    }
    stage.dflock("-x -s -n file true").run().is(0);
}

#[test]
fn what_has_no_meaning_here_is_passed_over() {
    let stage = Stage::new();
    stage.dflock("-o -F file true").run().is(0);
    stage.dflock("--close --no-fork file true").run().is(0);
}

#[test]
fn verbose_says_what_happens() {
    let stage = Stage::new();
    stage.dflock("--verbose file true").run().is(0).says(": acquired after ");
    stage.dflock("file true").run().is(0).silent();
}

#[test]
fn every_way_to_the_same_file_is_one_lock() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("folder")).unwrap();
    symlink(stage.path("folder"), stage.path("link")).unwrap();
    let _held = hold(&stage, "folder/file");
    let absolute = stage.path("folder/file").display().to_string();
    for way in ["folder/file", "./folder/../folder/file", "link/file", &absolute] {
        stage.dflock(&format!("-n {way} true")).run().is(1).says(&format!("bandog: {absolute}: busy, held by "));
    }
    stage.dflock("-n file true").dir(&stage.path("folder")).run().is(1);
    assert!(!stage.path("folder/file").exists(), "no file is made");
    // A link to the file itself, when there is one.
    stage.write("folder/file", "");
    symlink(stage.path("folder/file"), stage.path("shortcut")).unwrap();
    stage.dflock("-n shortcut true").run().is(1);
    // It is the lock of that name.
    stage.line("run -n").arg(&absolute).words("-- true").run().is(75);
}

#[test]
fn help_and_version_are_its_own() {
    let stage = Stage::new();
    let help = stage.dflock("--help").run().is(0).out;
    assert!(help.contains("dflock [OPTIONS] FILE COMMAND [ARG]..."), "{help}");
    stage.dflock("-V").run().is(0).prints(&format!("dflock {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_directory_can_be_locked() {
    let stage = Stage::new();
    let _held = hold(&stage, ".");
    stage.dflock("-n . true").run().is(1);
}

#[test]
fn what_cannot_be_done_is_64_and_says_why() {
    let stage = Stage::new();
    stage.dflock("9").run().is(64).says("a lock on an open file descriptor ends with the process");
    stage.dflock("-n 9").run().is(64).says("open file descriptor");
    stage.dflock("file").run().is(64).says("a command is needed");
    stage.dflock("").run().is(64);
    stage.dflock("-u file true").run().is(64);
    stage.dflock("-w soon file true").run().is(64).says("not a duration");
    stage.dflock("-E 256 file true").run().is(64);
}

#[test]
fn options_from_elsewhere_hold_here_too() {
    let stage = Stage::new();
    stage.write("config/bandog/config.toml", "max_hold = 0.2\nconflict_exit_code = 50\n");
    stage.dflock("file sleep 1000").run().is(91);
    let held = hold(&stage, "other");
    stage.dflock("-n other true").run().is(1);
    drop(held);
}

#[test]
fn skipping_is_nothing_that_flock_does() {
    let stage = Stage::new();
    let file = stage.path("file");
    let _job = stage.line("run").arg(&file).hold();
    stage.dflock(&format!("-n {} true", file.display())).env("BANDOG_ON_BUSY", "skip").run().is(1);
}
