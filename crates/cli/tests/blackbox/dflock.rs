//! Under the name `dflock` it takes the command lines of flock(1), with its codes.

use std::os::unix::fs::symlink;

use crate::running::{Running, until, uptime};
use crate::stage::Stage;

/// Holds the lock of `file`.
fn hold<'a>(stage: &'a Stage, line: &str) -> Running<'a> {
    let holds = stage.dflock(line).piped().words("sh -c").arg("echo ready $$; read _; :").start();
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
    stage.dflock("-o file true").run().is(0).silent();
    stage.dflock("--no-fork file true").run().is(0).silent();
    stage.dflock("--fcntl file true").run().is(0).silent();
    let _held = hold(&stage, "file");
    stage.dflock("--fcntl -n file true").run().is(1);
}

/// Cron mails what a job says.
#[test]
fn nothing_is_said_of_a_busy_lock_or_a_wait() {
    let stage = Stage::new();
    let held = hold(&stage, "file");
    for line in ["-n file true", "-w 0.6 file true", "-n -E 3 file true"] {
        let outcome = stage.dflock(line).run().silent();
        assert!(matches!(outcome.code, Some(1 | 3)), "{outcome:?}");
    }
    let waits = stage.dflock("file true").start();
    let name = stage.path("file").display().to_string();
    until("it waits, for longer than a wait without a word", || {
        let shown = stage.line("show --json").arg(&name).run().is(0);
        let waited = shown.json()["waiters"][0]["waited_ms"].as_u64();
        waited.filter(|waited| *waited > 1500)
    });
    held.finish().is(0).done();
    waits.wait().is(0).silent();
}

#[test]
fn no_wait_wins_over_a_wait() {
    let stage = Stage::new();
    let _held = hold(&stage, "file");
    let began = uptime();
    stage.dflock("-n -w 60 file true").run().is(1);
    stage.dflock("-w 60 -n file true").run().is(1);
    assert!(uptime() - began < 60.0, "it waited");
}

#[test]
fn verbose_says_what_flock_does_where_flock_does() {
    let stage = Stage::new();
    let outcome = stage.dflock("--verbose file echo hello").run().is(0).silent();
    let lines: Vec<&str> = outcome.out.lines().collect();
    let took = lines[0].strip_prefix("dflock: getting lock took ").and_then(|rest| rest.strip_suffix(" seconds"));
    assert!(took.is_some_and(|took| took.parse::<f64>().is_ok() && took.split('.').nth(1).unwrap().len() == 6));
    assert_eq!(lines[1..], ["dflock: executing echo", "hello"]);
    let _held = hold(&stage, "file");
    let failed = stage.dflock("--verbose -n file true").run().is(1).prints("");
    assert_eq!(failed.err, "dflock: failed to get lock\n");
    let failed = stage.dflock("--verbose -w 0.1 file true").run().is(1).prints("");
    assert_eq!(failed.err, "dflock: timeout while waiting to get lock\n");
}

#[test]
fn long_options_may_be_cut_short() {
    let stage = Stage::new();
    let _held = hold(&stage, "--sh file");
    stage.dflock("--share --nonb file true").run().is(0);
    stage.dflock("--excl --nonblocking --conflict 7 file true").run().is(7);
    stage.dflock("--time 0.1 file true").run().is(1);
    stage.dflock("--no file true").run().is(64).says("--no");
}

#[test]
fn errors_begin_with_dflock() {
    let stage = Stage::new();
    let usage = stage.dflock("--wat file true").run().is(64);
    assert!(usage.err.starts_with("dflock: unexpected argument '--wat'"), "{usage:?}");
    assert!(usage.err.ends_with("\nTry 'dflock --help' for more information.\n"), "{usage:?}");
    let away = stage.dflock("file true").env("BANDOG_STORE", "redis://127.0.0.1:1").run().is(69);
    assert!(away.err.starts_with("dflock: ") && away.err.lines().count() == 1, "{away:?}");
    let file = stage.path("file").display().to_string();
    let lost = stage.dflock("file sleep 1000").env("BANDOG_MAX_HOLD", "0.2").run().is(91);
    assert!(lost.err.starts_with(&format!("dflock: {file}: held for ")), "{lost:?}");
    stage.dflock("file no-such-command").run().is(127).says("dflock: no-such-command: ");
}

#[test]
fn every_way_to_the_same_file_is_one_lock() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("folder")).unwrap();
    symlink(stage.path("folder"), stage.path("link")).unwrap();
    let _held = hold(&stage, "folder/file");
    let absolute = stage.path("folder/file").display().to_string();
    for way in ["folder/file", "./folder/../folder/file", "link/file", &absolute] {
        stage.dflock(&format!("-n {way} true")).run().is(1).silent();
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
    for told in ["dflock [OPTIONS] FILE COMMAND [ARG]...", "dflock [OPTIONS] NUMBER", "BANDOG_STORE", "locks.db"] {
        assert!(help.contains(told), "{told}: {help}");
    }
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
    stage.dflock("file").run().is(64).says("bad file descriptor: 'file'; a file wants a command");
    stage.dflock("").run().is(64).says("missing file descriptor, file or directory");
    stage.dflock("-u file true").run().is(64).says("-u releases the lock of a file descriptor");
    stage.dflock("-o -F file true").run().is(64);
    stage.dflock("--start 1 file true").run().is(64).says("there are no locks on parts of a file");
    stage.dflock("--length 1 file true").run().is(64).says("--length");
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
