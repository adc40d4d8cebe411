//! The command on a Redis server of its own.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use bandog_rig::Server;

const PASSWORD: &str = "s3cret-of-the-test";

/// The command with a password for the server.
fn bandog(server: &Server, password: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bandog"));
    let url = format!("redis+unix://:{password}@{}", server.socket().display());
    command.env("BANDOG_STORE", url).env("HOME", server.directory()).env_remove("XDG_CONFIG_HOME");
    command.args(words).stdin(Stdio::null());
    command
}

fn run(server: &Server, words: &[&str]) -> Output {
    bandog(server, PASSWORD, words).output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_command_runs_under_a_lock_of_a_redis_server() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::with(&["--requirepass", PASSWORD]);
    let alone = run(&server, &["run", "job", "--", "sh", "-c", "echo token $BANDOG_TOKEN"]);
    assert!(alone.status.success() && said(&alone).contains("token "), "{}", said(&alone));

    let mut holds = bandog(&server, PASSWORD, &["run", "job", "--", "sh", "-c", "echo ready; read -r _ < gate"]);
    let gate = server.directory().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut held = holds.current_dir(server.directory()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(held.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");

    let busy = run(&server, &["run", "-n", "job", "--", "true"]);
    assert_eq!(busy.status.code(), Some(75), "{}", said(&busy));
    std::fs::write(&gate, "go\n").unwrap();
    assert!(held.wait().unwrap().success());
    assert!(run(&server, &["run", "--wait", "5s", "job", "--", "true"]).status.success());

    let wrong = bandog(&server, "another-s3cret", &["run", "-v", "job", "--", "true"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(69), "{}", said(&wrong));
    assert!(!said(&wrong).contains("s3cret"), "{}", said(&wrong));
}

/// What a command says of a server without a password that it cannot use.
fn unavailable(server: &Server, words: &[&str]) -> String {
    let mut command = bandog(server, "", words);
    let output = command.env("BANDOG_STORE", server.unix_url()).env("BANDOG_UNAVAILABLE_AFTER", "300ms").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    said(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_server_that_answers_and_cannot_serve_is_told_from_one_that_is_away() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::with(&["--min-replicas-to-write", "1"]);
    let told = unavailable(&server, &["run", "job", "--", "true"]);
    assert!(told.contains("NOREPLICAS") && told.contains("why: it answers, but cannot serve now"), "{told}");
    let (message, _) = told.split_once(" why: ").unwrap();
    let named = [&server.unix_url(), "\"job\""].map(|word| message.matches(word).count());
    assert_eq!(named, [1, 1], "lock and store are named once: {message}");

    server.keep_busy();
    let told = unavailable(&server, &["ls"]);
    assert!(told.contains("BUSY") && told.contains("why: it answers") && told.contains("SCRIPT KILL"), "{told}");

    server.kill();
    let told = unavailable(&server, &["doctor"]);
    assert!(told.contains("why: nothing listens there") && told.contains("is an error at once"), "{told}");
    assert!(!told.contains("bandog doctor"), "{told}");
}

#[test]
fn a_server_that_answers_no_writes_is_an_error_of_every_command_within_connect_timeout() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::start();
    server.tell("CLIENT PAUSE 120000 WRITE");
    let commands: [&[&str]; 6] = [
        &["run", "-n", "job", "--", "true"],
        &["run", "job", "--", "true"],
        &["ls"],
        &["show", "job"],
        &["break", "job", "--yes", "--reason", "repairs"],
        &["acquire", "job"],
    ];
    for words in commands {
        let url = format!("{}?connect_timeout=300ms", server.unix_url());
        let clock = bandog::Clock::system();
        let began = clock.now();
        let mut command = bandog(&server, "", words);
        let output = command.env("BANDOG_STORE", url).env("BANDOG_UNAVAILABLE_AFTER", "300ms").output().unwrap();
        let told = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        let took = clock.now().since(began);
        assert!(took.as_secs() < 10, "{words:?} took {took:?}");
        assert_eq!(output.status.code(), Some(69), "{words:?}: {told}");
        assert!(told.contains("no answer within 300ms while trying what this user may do"), "{words:?}: {told}");
    }
}

/// A watch with notices, looking so rarely that looks tell nothing.
fn watch(server: &Server, query: &str, every: &str) -> (Child, Lines<std::process::ChildStdout>) {
    let mut watch = bandog(server, PASSWORD, &["watch", "--json", "--every", every]);
    let url = format!("redis+unix://:{PASSWORD}@{}{query}", server.socket().display());
    let mut watch = watch.env("BANDOG_STORE", url).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    (watch, lines)
}

type Lines<S> = std::io::Lines<BufReader<S>>;

fn event<S: std::io::Read>(lines: &mut Lines<S>, name: &str) -> serde_json::Value {
    loop {
        let event: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if event["event"] == name {
            return event;
        }
    }
}

#[test]
fn a_watch_hears_of_releases_where_they_are_announced() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::with(&["--requirepass", PASSWORD]);
    let (mut silent, mut lines) = watch(&server, "", "1h");
    assert_eq!(event(&mut lines, "watching")["by"], "looks");
    silent.kill().unwrap();
    silent.wait().unwrap();
    let told = run(&server, &["watch", "--for", "0"]);
    assert!(
        said(&told).contains("set announce=true in the URL of this command and of the processes"),
        "{}",
        said(&told)
    );
    let (mut heard, mut lines) = watch(&server, "?announce=true", "1h");
    assert_eq!(event(&mut lines, "watching")["by"], "notices");
    let mut run = bandog(&server, PASSWORD, &["run", "job", "--", "sh", "-c", "echo $BANDOG_HOLDER"]);
    let url = format!("redis+unix://:{PASSWORD}@{}?announce=true", server.socket().display());
    let run = run.env("BANDOG_STORE", url).output().unwrap();
    let released = event(&mut lines, "released");
    assert_eq!(released["holder"]["id"], String::from_utf8_lossy(&run.stdout).trim(), "{released}");
    heard.kill().unwrap();
    heard.wait().unwrap();
}

#[test]
fn a_watch_outlives_a_server_that_does_not_answer() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::with(&["--requirepass", PASSWORD]);
    let (mut watched, mut lines) = watch(&server, "?announce=true&connect_timeout=200ms", "50ms");
    assert_eq!(event(&mut lines, "watching")["by"], "notices");
    server.kill();
    // Either may be noticed first.
    let mut told: Vec<String> = (0..2)
        .map(|_| serde_json::from_str::<serde_json::Value>(&lines.next().unwrap().unwrap()).unwrap())
        .map(|event| format!("{} {}{}", event["event"], event["kind"], event["by"]))
        .collect();
    told.sort();
    assert_eq!(told, [r#""unanswered" "unavailable"null"#, r#""watching" null"looks""#]);
    server.restart();
    event(&mut lines, "answered");
    assert_eq!(event(&mut lines, "watching")["by"], "notices");
    watched.kill().unwrap();
    watched.wait().unwrap();
}

/// A command that waits for a lock that another holds, and says what happens as JSON.
fn waits(server: &Server, options: &[&str]) -> Child {
    let words = [&["run", "--json"], options, &["job", "--", "touch", "ran"]].concat();
    let mut waits = bandog(server, PASSWORD, &words);
    let waits = waits.current_dir(server.directory()).env("BANDOG_UNAVAILABLE_AFTER", "3s");
    waits.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_wait_for_a_server_that_dies_is_unavailable_and_never_busy() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::with(&["--requirepass", PASSWORD]);
    let mut holds =
        bandog(&server, PASSWORD, &["run", "--lease", "60s", "job", "--", "sh", "-c", "echo ready; read -r _"]);
    let mut held = holds.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(held.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let mut waiting: Vec<(Child, Lines<std::process::ChildStderr>)> =
        [&["-w", "25s"][..], &["--on-busy", "skip", "-w", "6s"], &[]]
            .iter()
            .map(|options| waits(&server, options))
            .map(|mut waits| {
                let lines = BufReader::new(waits.stderr.take().unwrap()).lines();
                (waits, lines)
            })
            .collect();
    for (_, lines) in &mut waiting {
        assert!(!event(lines, "waiting")["holders"].as_array().unwrap().is_empty());
    }
    server.kill();
    let (clock, limit) = (bandog::Clock::system(), Duration::from_secs(3 + 4));
    let killed = clock.now();
    for (waits, lines) in &mut waiting {
        let silent = event(lines, "unanswered");
        assert!(silent["silent_ms"].as_u64() <= silent["waited_ms"].as_u64(), "{silent}");
        assert_eq!(event(lines, "error")["kind"], "unavailable");
        // It is told when `unavailable_after` is over, and not after five seconds more for releases that nobody takes.
        let took = clock.now().since(killed);
        assert!(took < limit, "{took:?}");
        assert_eq!(waits.wait().unwrap().code(), Some(69));
    }
    assert!(!server.directory().join("ran").exists());
    drop(held.stdin.take());
    held.wait().unwrap();
}

/// How a command ends that may open only so many files, and what it says.
fn with_files(server: &Server, files: u32, words: &str) -> (Option<i32>, String) {
    let mut shell = bandog(server, PASSWORD, &[]);
    let program = shell.get_program().to_owned();
    let envs: Vec<_> = shell.get_envs().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned()))).collect();
    shell = Command::new("sh");
    shell.envs(envs).env("BANDOG_UNAVAILABLE_AFTER", "2s").stdin(Stdio::null());
    shell.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\" {words}")).arg(program);
    let output = shell.output().unwrap();
    (output.status.code(), said(&output))
}

#[test]
fn a_command_that_may_open_too_few_files_fails_plainly_and_leaves_the_lock_free() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::with(&["--requirepass", PASSWORD]);
    for files in 6..24 {
        for words in ["run job -- true", "acquire job"] {
            let (code, told) = with_files(&server, files, words);
            // One that did get its ticket keeps the lock.
            if code == Some(0) {
                assert!(run(&server, &["break", "--now", "--yes", "--reason", "test", "job"]).status.code() < Some(91));
                continue;
            }
            assert_eq!(code, Some(69), "{files} files, {words}: {told}");
            assert!(!told.contains("panicked"), "{files} files, {words}: {told}");
            let next = run(&server, &["run", "-n", "job", "--", "true"]);
            assert!(next.status.success(), "{files} files, {words}: {told}; then {}", said(&next));
        }
    }
}
