//! `bandog doctor` on real servers: one that is good and many that are each bad in one way. It says the right thing, with the line to
//! change, and ends with the right code.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::process::{Command, Output, Stdio};

use bandog_rig::Server;

/// What a server for locks has, see docs/deployment.md.
const GOOD: &[&str] = &["--maxmemory", "256mb", "--appendonly", "yes"];

fn good_but(more: &[&str]) -> Server {
    Server::with(&[GOOD, more].concat())
}

fn doctor(server: &Server, url: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bandog"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", server.directory());
    command.env("BANDOG_STORE", url).env("LC_ALL", "C.UTF-8").arg("doctor").args(words).stdin(Stdio::null());
    command.output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// How old the server is, is not the tests' choice. An old one has one remark that is risky instead of fine, and all else is as it
/// would be without it: the answer as a repaired release would give it, and whether that is another one.
fn as_if_repaired(answer: &str) -> (String, bool) {
    let is_old = answer.lines().any(|line| line.starts_with("! version ") && line.contains("CVE-2025-49844"));
    if !is_old {
        return (answer.to_owned(), false);
    }
    let (before, counts) = answer.rsplit_once("\n\n").unwrap();
    let (fine, rest) = counts.split_once(" fine, ").unwrap();
    let (risky, rest) = rest.split_once(" risky").unwrap();
    let [fine, risky]: [u32; 2] = [fine, risky].map(|count| count.parse().unwrap());
    (format!("{before}\n\n{} fine, {} risky{rest}", fine + 1, risky - 1), true)
}

#[test]
fn an_old_server_differs_in_one_remark() {
    let old =
        "redis://x\n\n! version  Redis 6.2.1, in which … (CVE-2025-49844)\n✓ role\n\n18 fine, 2 risky, 1 wrong\nmore\n";
    let (answer, is_old) = as_if_repaired(old);
    assert!(is_old && answer == old.replace("18 fine, 2 risky", "19 fine, 1 risky"), "{answer}");
    let other = old.replace("! version", "✓ version");
    assert_eq!(as_if_repaired(&other), (other.clone(), false));
}

/// Examines a server at a URL: the codes with and without `--strict`, and what must be in the answer.
fn says(server: &Server, url: &str, codes: [i32; 2], texts: &[&str]) {
    let usual = doctor(server, url, &[]);
    let (answer, is_old) = as_if_repaired(&out(&usual));
    for text in texts {
        assert!(answer.contains(text), "{text:?} is not in {answer}{usual:?}");
    }
    assert_eq!(usual.status.code(), Some(codes[0]), "{answer}");
    assert!(usual.stderr.is_empty(), "{usual:?}");
    let strict = if is_old { 1 } else { codes[1] };
    assert_eq!(doctor(server, url, &["--strict"]).status.code(), Some(strict), "{answer}");
    // A line that the next restart forgets comes with a word about that, and no other does.
    let note =
        "\nCONFIG SET lasts until the server restarts; CONFIG REWRITE, or the same line in redis.conf, keeps it.\n";
    assert_eq!(answer.contains("change: CONFIG SET "), answer.ends_with(note), "{answer}");
    let json = out(&doctor(server, url, &["--json"]));
    for remark in json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let is_well = remark["event"] == "summary" || remark["fitness"] == "fine";
        assert!(is_well || remark["change"].is_string(), "not fine, and nothing to change: {remark}");
    }
    let summary: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let told = summary["note"].as_str().map(|told| format!("\n{told}\n"));
    assert_eq!(told.as_deref(), answer.ends_with(note).then_some(note), "{summary}");
}

macro_rules! servers {
    ($($name:ident: $start:expr, $url:expr, $codes:expr, $texts:expr;)*) => {
        $(#[test]
        fn $name() {
            if bandog_rig::is_missing() {
                return;
            }
            let server: Server = $start;
            let url: fn(&Server) -> String = $url;
            says(&server, &url(&server), $codes, &$texts);
        })*
    };
}

fn prepared(server: Server, words: &[&str]) -> Server {
    for line in words {
        server.tell(line);
    }
    server
}

fn busy(server: Server) -> Server {
    server.keep_busy();
    server
}

const RULE: &str = "ACL SETUSER locker on >secret ~lock:* resetchannels &lock:inbox:* +eval +evalsha +script|load +time +exists +mget +set +mset +setrange +hget +hmget \
     +hkeys +hset +hdel +del +pexpireat +pttl +publish +subscribe +unsubscribe +info +scan +ping";

fn user(server: &Server) -> String {
    format!("redis://locker:secret@127.0.0.1:{}", server.port)
}

servers! {
    a_good_server_is_fine: good_but(&[]), Server::url, [0, 0],
        ["✓ eviction       maxmemory-policy is noeviction", "20 fine, 0 risky, 0 wrong"];
    an_evicting_server_is_wrong: good_but(&["--maxmemory-policy", "allkeys-lru"]), Server::url, [1, 1],
        ["✗ eviction       maxmemory-policy is allkeys-lru", "why:    when memory is short",
         "change: CONFIG SET maxmemory-policy noeviction", "19 fine, 0 risky, 1 wrong"];
    a_server_that_saves_nothing_is_risky: Server::with(&["--maxmemory", "256mb"]), Server::url, [0, 1],
        ["! persistence    nothing is saved", "change: CONFIG SET appendonly yes", "19 fine, 1 risky, 0 wrong"];
    a_replica_without_a_master_is_wrong: good_but(&["--replicaof", "127.0.0.1", "1"]), Server::url, [1, 1],
        ["✗ role           it is a replica", "change: use its master: redis://127.0.0.1:1", "✗ locking        "];
    a_replica_that_serves_nothing_is_wrong:
        prepared(good_but(&["--replicaof", "127.0.0.1", "1"]), &["CONFIG SET replica-serve-stale-data no"]),
        Server::url, [1, 1], ["✗ role           it is a replica", "✗ locking        ", "MASTERDOWN", "change: see role"];
    a_server_that_is_busy_with_a_script_is_wrong: busy(good_but(&[])), Server::url, [1, 1],
        ["✗ locking        a lock could not be tried: TIME is refused (BUSY", "change: SCRIPT KILL",
         "? latency        PING is refused (BUSY", "? clock          TIME is refused (BUSY"];
    a_server_that_waits_for_replicas_is_wrong: good_but(&["--min-replicas-to-write", "1"]), Server::url, [1, 1],
        ["✗ replication    0 good replicas", "NOREPLICAS"];
    a_user_without_a_command_is_wrong: prepared(good_but(&[]), &[&RULE.replace("+hset ", "")]), user, [1, 1],
        ["✗ permissions    locker may not use hset", "change: ACL SETUSER locker +eval "];
    a_user_without_its_channels_is_wrong: prepared(good_but(&[]), &[&RULE.replace("&lock:inbox:* ", "")]), user, [1, 1],
        ["✗ permissions    locker may not use the channels lock:inbox:*",
         "change: ACL SETUSER locker &lock:inbox:* +eval "];
    a_user_who_cannot_see_all_is_only_told: prepared(good_but(&[]), &[RULE]), user, [0, 1],
        ["? timeout        CONFIG GET is refused", "change: ACL SETUSER locker +config|get", "0 risky, 0 wrong, 4 unknown"];
    a_server_without_memory_is_wrong: good_but(&["--maxmemory", "700kb"]), Server::url, [1, 1],
        ["✗ memory         ", "% of maxmemory", "change: CONFIG SET maxmemory "];
    a_key_that_never_ends_is_risky: prepared(good_but(&[]), &["SET lock:note hello"]), Server::url, [0, 1],
        ["! keys           looked at 1 key ", "lock:note (string)"];
    a_server_for_everybody_is_wrong:
        good_but(&["--bind", "127.0.0.1", "-192.0.2.1", "--protected-mode", "no"]), Server::url, [1, 1],
        ["✗ login          no password is needed", "change: CONFIG SET requirepass "];
    a_server_that_cuts_connections_is_risky: good_but(&["--timeout", "5"]), Server::url, [0, 1],
        ["! timeout        connections are cut after 5 s", "change: CONFIG SET timeout 0"];
    a_slow_neighbour_is_risky: prepared(good_but(&[]), &["DEBUG SLEEP 0.15"]), Server::url, [0, 1],
        ["! slow-commands  1 in the last day; the slowest is DEBUG"];
    a_wrong_password_is_wrong_and_not_repeated: good_but(&["--requirepass", "right"]),
        |server| format!("redis://:s3cret@127.0.0.1:{}", server.port), [1, 1],
        ["✗ login  ", "change: the URL takes both"];
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = Server::start();
    server.kill();
    let output = doctor(&server, &server.url(), &["--json"]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(output.stdout.is_empty() && String::from_utf8_lossy(&output.stderr).contains("unavailable"), "{output:?}");
}

#[test]
fn no_password_is_printed() {
    if bandog_rig::is_missing() {
        return;
    }
    let server = good_but(&["--requirepass", "s3cret"]);
    for words in [&[][..], &["--json"]] {
        for url in
            ["redis://:s3cret@", "redis://:wrong-s3cret@"].map(|login| format!("{login}127.0.0.1:{}", server.port))
        {
            let output = doctor(&server, &url, words);
            assert!(!format!("{output:?}").contains("s3cret"), "{output:?}");
            assert!(out(&output).lines().count() > 1, "{output:?}");
        }
    }
}
