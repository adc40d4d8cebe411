//! `--store` and `--config` of every subcommand that has them: cases for the table in `options`.

use crate::running::{Outcome, until};
use crate::stage::Stage;

/// Runs the subcommand on whatever store the options and variables say; a ticket of the usual store is at hand for those that
/// want one.
fn with<'a>(stage: &'a Stage, sub: &str, options: &str, variables: &[(&str, &str)]) -> Outcome<'a> {
    let ticket = stage.line("acquire --lease 10m --of 100 tickets").run().is(0).out;
    let mut line = match sub {
        "run" => stage.line(&format!("run -n {options} job -- true")),
        "acquire" | "wait" => stage.line(&format!("{sub} -n {options} job")),
        _ => stage.line(&format!("{sub} {options}")),
    };
    for (key, value) in variables {
        line = line.env(key, value);
    }
    if elsewhere(sub) == 0 { line.run() } else { line.fed(&ticket) }
}

/// The code of the subcommand on another store: there the lock is free and the ticket unknown.
fn elsewhere(sub: &str) -> i32 {
    if matches!(sub, "run" | "acquire" | "wait") { 0 } else { 90 }
}

pub(crate) fn store(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    let here = if elsewhere(sub) == 0 { 75 } else { 0 };
    let (usual, other) = (stage.store(), stage.url("other.db"));
    with(stage, sub, "", &[]).is(here);
    with(stage, sub, &format!("--store {other}"), &[]).is(elsewhere(sub));
    with(stage, sub, "", &[("BANDOG_STORE", &stage.url("third.db"))]).is(elsewhere(sub));
    with(stage, sub, &format!("--store {usual}"), &[("BANDOG_STORE", &other)]).is(here);
    let wrong = with(stage, sub, "--store carrier-pigeon:coop", &[]).is(64);
    wrong.says("\"…\" names no store; there are ");
}

pub(crate) fn config(stage: &Stage, sub: &str) {
    stage.write("wrong.toml", "lease = 'soon'\n");
    stage.write("right.toml", "lease = '20s'\n");
    with(stage, sub, "--config right.toml", &[("BANDOG_CONFIG", "wrong.toml")]).is(0).silent();
    let named = "bandog: wrong.toml: lease=\"soon\" is not a duration";
    with(stage, sub, "--config wrong.toml", &[]).is(64).says(named);
    with(stage, sub, "", &[("BANDOG_CONFIG", "wrong.toml")]).is(64).says(named);
}

#[test]
fn a_store_that_keeps_nobody_out_is_refused() {
    let stage = Stage::new();
    stage.line("run --store memory: job -- true").run().is(64).says("every command would have locks of its own");
    stage.line("run job -- true").env("BANDOG_STORE", "locks.db").run().is(64);
    let relative = stage.line("run job -- true").env("BANDOG_STORE", "sqlite:locks.db").run().is(64);
    relative.says("the path must be absolute, or begin with ~/");
    stage.line("run --store sqlite://locks.db job -- true").run().is(64).says("no //");
    stage.line("run job -- true").env("BANDOG_STORE", "sqlite:~/mine.db").run().is(0);
    assert!(stage.path("mine.db").exists(), "HOME is the stage");
}

#[test]
fn an_empty_address_is_an_error_and_not_the_usual_store() {
    let stage = Stage::new();
    stage.write("empty.toml", "store = ''\n");
    for sub in [
        "run job -- touch ran",
        "acquire job",
        "ls",
        "show job",
        "break job --reason x -y",
        "doctor",
        "bench -y",
        "watch",
        "top --json",
    ] {
        let (words, command) = sub.split_once(" -- ").unwrap_or((sub, ""));
        let line = || stage.line(words);
        let rest = if command.is_empty() { String::new() } else { format!("-- {command}") };
        line().arg("--store=").words(&rest).run().is(64).says("--store is empty").done();
        line().words(&rest).env("BANDOG_STORE", "").run().is(64).says("BANDOG_STORE is empty").done();
        line().words("--config empty.toml").words(&rest).without("BANDOG_STORE").run().is(64).says("is empty").done();
    }
    assert!(!stage.path("ran").exists() && !stage.path("state").exists());
    let told = stage.line("run job -- true").env("BANDOG_STORE", "").run().is(64);
    told.says("leave it out").done();
}

#[test]
fn a_variable_that_is_almost_ours_is_warned_of() {
    let stage = Stage::new();
    let said = "the variable BANDOG_STROE means nothing here; did you mean BANDOG_STORE?";
    let line =
        |options: &str| stage.line(&format!("run {options} job -- true")).env("BANDOG_STROE", "redis://:s3cret@h");
    let told = line("").run().is(0).says(&format!("bandog: warning: {said}\n"));
    assert!(!told.err.contains("s3cret"), "{told:?}");
    assert_eq!(line("--json").run().is(0).event("warning")["message"], said);
    line("-q").run().is(0).silent().done();
    stage.line("ls").env("BANDOG_LAESE", "3s").run().is(0).says("did you mean BANDOG_LEASE?").done();
    let under = stage.line("run job -- ").arg(crate::stage::BANDOG).words("run other -- true").run().is(0);
    under.silent().done();
}

/// A user that runs nothing else: the limit counts all threads of a user, and root has none.
const NOBODY_ELSE: u32 = 64_329;

#[test]
fn a_command_that_may_start_too_few_threads_fails_plainly() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    if !rustix::process::geteuid().is_root() || Command::new("bash").arg("-c").arg("ulimit -u 9").status().is_err() {
        return eprintln!("!!! SKIPPED: threads are limited by bash, for another user than root");
    }
    let stage = Stage::new();
    let dir = stage.path("theirs");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = dir.join("bandog");
    std::fs::copy(crate::stage::BANDOG, &program).unwrap();
    for threads in 2..8 {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("ulimit -u {threads}; exec \"$0\" run job -- true")).arg(&program);
        shell.env("HOME", &dir).env("BANDOG_STORE", format!("sqlite:{}", dir.join("locks.db").display()));
        let output = shell.current_dir(&dir).uid(NOBODY_ELSE).gid(NOBODY_ELSE).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 69)), "{threads} threads: {told}");
        assert!(!told.contains("panicked"), "{threads} threads: {told}");
    }
}

/// `docs/redis.md` promises it. Connections that are opened again say nothing new.
#[test]
fn a_server_that_may_evict_locks_is_warned_of_once() {
    let Some(stage) = Stage::on_redis(&["--maxmemory-policy", "allkeys-lru"]) else { return };
    let warning = "may evict locks: maxmemory-policy is allkeys-lru; set it to noeviction";
    let job = stage.hold("--lease 1s");
    job.await_err(warning);
    let server = stage.server.as_ref().unwrap();
    let before: Vec<String> = server.listeners();
    assert!(server.cut("bandog") + server.cut("bandog-news") > 1);
    until("connections are open again", || {
        let now = server.listeners();
        (!now.is_empty() && now.iter().all(|name| !before.contains(name))).then_some(())
    });
    let outcome = job.finish().is(0);
    let said = outcome.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.starts_with("bandog: warning: redis+unix://"), "{outcome:?}");
    assert_eq!(said.matches(warning).count(), 1, "{outcome:?}");
    let told = stage.line("run --json job -- true").run().is(0);
    assert!(told.event("warning")["message"].as_str().unwrap().contains(warning), "{told:?}");
    stage.line("acquire job").run().is(0).says(warning);
    stage.line("run -q other -- true").run().is(0).silent();
    server.tell("CONFIG SET maxmemory-policy noeviction");
    stage.line("run other -- true").run().is(0).silent();
}
