//! What passes through unchanged: streams, codes, arguments, environment, files.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use crate::hold::{Run, hold, is_alive, now};

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(status.signal(), None);
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn exit_codes_are_those_of_a_shell() {
    let run = Run::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        assert_eq!(output(&mut run.hold(&[], &["sh", "-c", script])), (Some(code), "".into(), "".into()), "{script}");
    }
}

#[test]
fn command_that_cannot_be_run_is_reported_to_the_wrapper() {
    let run = Run::new();
    let plain = run.file("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    let plain = plain.to_str().unwrap();
    for (program, code, words) in [
        ("/no/such", 127, "/no/such: not found"),
        ("no-such-command", 127, "no-such-command: not found in PATH"),
        ("exit 3", 127, "sh -c"),
        (plain, 126, "not executable: permission denied; chmod +x"),
        ("/tmp", 126, "directory"),
    ] {
        let (got, stdout, stderr) = output(&mut run.hold(&[], &[program]));
        assert_eq!((got, &*stdout, stderr.lines().count()), (Some(code), "", 1), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn streams_pass_binary_data() {
    let run = Run::new();
    let data: Vec<u8> =
        (0..1_000_003_u32).map(|index| u8::try_from(index.wrapping_mul(index) >> 3 & 0xff).unwrap()).collect();
    for script in ["exec cat", "exec cat >&2"] {
        let mut command = run.hold(&[], &["sh", "-c", script]);
        let mut wrapper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = wrapper.stdin.take().unwrap();
        let sent = data.clone();
        let writer = std::thread::spawn(move || input.write_all(&sent).unwrap());
        let output = wrapper.wait_with_output().unwrap();
        writer.join().unwrap();
        let (used, unused) =
            if script.ends_with('2') { (output.stderr, output.stdout) } else { (output.stdout, output.stderr) };
        assert!(used == data && unused.is_empty(), "{} bytes of {}", used.len(), data.len());
    }
}

#[test]
fn closed_streams_become_empty_ones() {
    let run = Run::new();
    let script = "\"$HOLD\" -- sh -c 'seen=$(readlink /proc/$$/fd/0 /proc/$$/fd/1); echo \"$seen\" >&2' <&- >&-";
    let (code, _, seen) = output(run.command("sh").args(["-c", script]));
    assert_eq!((code, &*seen), (Some(0), "/dev/null\n/dev/null\n"), "no socket of ours got their numbers");
}

#[test]
fn inherited_files_stay_and_ours_do_not_come() {
    let run = Run::new();
    let look = |through: &str| {
        let script = format!("exec 7</dev/null; exec {through} ls /proc/self/fd");
        output(run.command("bash").args(["-c", &script]))
    };
    let (code, fds, _) = look("\"$HOLD\" --");
    assert!(code == Some(0) && fds.lines().any(|fd| fd == "7"), "{fds}");
    assert_eq!(fds, look("").1, "as without the wrapper");
}

#[test]
fn arguments_and_environment_pass_whatever_they_are() {
    let run = Run::new();
    let odd = OsString::from_vec(b"\xff\xfe \n'\"$ \\".to_vec());
    let mut command = run.command(hold());
    command.args(["--set", "PLANNED=a=b c", "--", "sh", "-c", "printf '%s\\0' \"$@\" \"$ODD\" \"$PLANNED\"", "sh"]);
    let output = command.arg(&odd).arg("").env("ODD", &odd).stderr(Stdio::inherit()).output().unwrap();
    let odd = odd.into_vec();
    assert_eq!(output.stdout, [&*odd, b"", &odd, b"a=b c", b""].join(&0));
}

#[test]
fn much_passes_too() {
    let run = Run::new();
    let long = "x".repeat(120_000);
    let mut command = run.command(hold());
    command.args([
        "--set",
        &format!("LONG={long}"),
        "--",
        "sh",
        "-c",
        "echo $# ${#1} ${#LONG} $(env | grep -c ^MANY_)",
        "sh",
    ]);
    command.arg(&long).args((0..5_000).map(|n| n.to_string())).envs((0..2_000).map(|n| (format!("MANY_{n}"), "y")));
    let (code, stdout, stderr) = output(&mut command);
    assert_eq!((code, &*stdout, &*stderr), (Some(0), "5001 120000 120000 2000\n", ""));
}

#[test]
fn variables_never_show_in_arguments() {
    let run = Run::new();
    let running = run.start(&["--set", "TOKEN=secret-7"], "echo $TOKEN; exec sleep 1000");
    assert_eq!(running.first, "secret-7");
    for pid in [running.supervisor, running.command] {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&arguments).contains("secret-7"));
    }
}

#[test]
fn what_was_ignored_stays_ignored_and_nothing_else() {
    let run = Run::new();
    let look = |before: &str, through: &str| {
        let script = format!("{before} exec {through} grep -E 'Sig(Ign|Blk)' /proc/self/status");
        output(run.command("bash").args(["-c", &script])).1
    };
    let nohup = "trap '' HUP INT USR1 TSTP;";
    for before in ["", nohup] {
        assert_eq!(look(before, "\"$HOLD\" --"), look(before, ""), "as without the wrapper: {before}");
    }
    assert_ne!(look(nohup, ""), look("", ""));
}

#[test]
fn processes_left_behind_by_a_command_that_ends_by_itself_live_on() {
    let run = Run::new();
    let (code, stdout, _) = output(&mut run.hold(&[], &["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]));
    assert_eq!(code, Some(0));
    assert!(is_alive(stdout.trim().parse().unwrap()));
}

#[test]
fn the_command_starts_soon() {
    let run = Run::new();
    let times = (0..20).map(|_| {
        let mut wrapper = run.hold(&[], &["sh", "-c", "echo $HOLD_BEGAN; exec \"$HOLD\" stamp"]);
        let mut text = String::new();
        wrapper.stdout(Stdio::piped()).spawn().unwrap().stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let stamps: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        stamps[1] - stamps[0]
    });
    let mut times: Vec<u64> = times.map(|nanos| nanos / 1_000).collect();
    times.sort_unstable();
    println!("from prepare to the command, in µs, with a shell between: median {}, all {times:?}", times[10]);
    assert!(times[0] < 1_000_000, "{times:?} at {:?}", now());
}
