//! `bandog bench`: short runs on SQLite and Redis, the question before it, its early end; and cases for the table in `options`.
//!
//! Nothing is said about how fast anything is.

use bandog::blocking::Locks;
use bandog_rig::Server;
use rustix::process::Signal;
use serde_json::Value;

use crate::running::{Outcome, until};
use crate::stage::Stage;

const ALL: [&str; 3] = ["uncontended", "contended", "hand-off"];

/// The objects on standard output.
fn objects(outcome: &Outcome<'_>) -> Vec<Value> {
    outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn scenarios(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["scenario"].as_str().unwrap()).collect()
}

/// What it measured with these options, all of it to the end.
fn measured(stage: &Stage, options: &str) -> Vec<Value> {
    let objects = objects(&stage.line("bench --json --for 0.1s").words(options).run().is(0).silent());
    assert!(objects.iter().all(|object| object["complete"] == true), "{objects:?}");
    objects
}

pub(crate) fn only(stage: &Stage, _: &str) {
    assert_eq!(scenarios(&measured(stage, "")), ALL);
    assert_eq!(scenarios(&measured(stage, "--only hand-off")), ["hand-off"]);
    let two = measured(stage, "--only contended --only uncontended --only contended");
    assert_eq!(scenarios(&two), ["uncontended", "contended"], "in the usual order, each once");
    let wrong = stage.line("bench --only fast").run().is(64).says("'fast'");
    wrong.says("[possible values: uncontended, contended, hand-off]").prints("");
}

pub(crate) fn length(stage: &Stage, _: &str) {
    let taken = |options: &str| measured(stage, options)[0]["taken_ms"].as_u64().unwrap();
    assert!(taken("--only uncontended") >= 100);
    let outcome = stage.line("bench --json --only uncontended --for 300ms").run().is(0);
    assert!(objects(&outcome)[0]["taken_ms"].as_u64().unwrap() >= 300, "{outcome:?}");
    for wrong in ["0", "0s", "soon", "-1s"] {
        stage.line("bench").arg(format!("--for={wrong}")).run().is(64).says("--for").prints("");
    }
}

pub(crate) fn tasks(stage: &Stage, _: &str) {
    let crowd = &measured(stage, "--only contended")[0];
    assert_eq!(crowd["tasks"], 16);
    let three = &measured(stage, "--only contended --tasks 3")[0];
    let number = |field: &str| three[field].as_u64().unwrap();
    assert_eq!(number("tasks"), 3);
    assert!(number("least_turns") * 3 <= number("operations") && number("operations") <= number("most_turns") * 3);
    for wrong in ["0", "many", "10001"] {
        stage.line("bench --tasks").arg(wrong).run().is(64).says("--tasks");
    }
}

pub(crate) fn name(stage: &Stage, _: &str) {
    let random = measured(stage, "--only uncontended")[0]["lock"].as_str().unwrap().to_owned();
    assert!(random.starts_with("bandog-bench:") && random.ends_with(":uncontended"), "{random}");
    assert_eq!(measured(stage, "--only uncontended --name mine")[0]["lock"], "mine:uncontended");
    assert_ne!(measured(stage, "--only uncontended")[0]["lock"], random.as_str(), "another number each time");
    let _held = stage.line("run mine:contended").hold();
    let busy = stage.line("bench --yes --for 0.1s --name mine").run().is(75).says("mine:contended: held by another");
    assert!(busy.out.contains("uncontended") && !busy.out.contains("tasks"), "{busy:?}");
    stage.line("bench --for 0.1s --name").arg("a".repeat(5000)).run().is(64).prints("");
    stage.line("bench --yes --for 0.1s --only uncontended --name").arg("").run().is(0).silent();
}

pub(crate) fn yes(stage: &Stage, _: &str) {
    let line = |options: &str| stage.line("bench --for 0.1s --only uncontended").words(options).run();
    line("").is(0).silent();
    let _job = stage.hold("");
    let refused = line("").is(64).prints("").says("is in use: somebody holds or waits for job.");
    let refused =
        refused.says("uncontended there for 0.1s each, 0.1s in all").says("calls without pause, up to about ");
    refused.says("begin with bandog-bench:").says("say --yes if it is.").done();
    assert_eq!(line("--json").is(64).event("error")["kind"], "no_terminal");
    for option in ["--yes", "-y"] {
        assert!(line(option).is(0).silent().out.contains("operations"));
    }
}

pub(crate) fn store(stage: &Stage, _: &str) {
    let (usual, other) = (stage.store(), stage.url("other.db"));
    let on = |line: crate::stage::Line<'_>| {
        objects(&line.words("--json --for 0.1s --only uncontended").run().is(0))[0]["store"].clone()
    };
    assert_eq!(on(stage.line("bench")), usual);
    assert_eq!(on(stage.line("bench --store").arg(&other)), other);
    assert_eq!(on(stage.line("bench").env("BANDOG_STORE", &other)), other);
    stage.line("bench --store carrier-pigeon:coop").run().is(64).says("names no store");
}

pub(crate) fn config(stage: &Stage, _: &str) {
    stage.write("wrong.toml", "lease = 'soon'\n");
    stage.line("bench --config wrong.toml").run().is(64).says("wrong.toml: lease=\"soon\"");
    stage.line("bench").env("BANDOG_CONFIG", "wrong.toml").run().is(64).says("wrong.toml: lease=\"soon\"");
}

pub(crate) fn json(stage: &Stage, _: &str) {
    let objects = measured(stage, "");
    assert_eq!(scenarios(&objects), ALL);
    objects.iter().for_each(is_sound);
    assert_eq!(stage.line("bench --json --wat").run().is(64).event("error")["kind"], "usage");
}

/// The numbers fit each other.
fn is_sound(object: &Value) {
    let number = |field: &str| object[field].as_u64().unwrap_or_else(|| panic!("{field} in {object}"));
    let micros = |field: &str| object[field].as_f64().unwrap_or_else(|| panic!("{field} in {object}"));
    assert!(number("operations") > 0 && number("per_second") > 0 && number("cores") > 0, "{object}");
    let percentiles = ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"].map(micros);
    assert!(percentiles[0] > 0.0 && percentiles.is_sorted(), "{object}");
    let counts = object["histogram"].as_array().unwrap().iter().map(|bucket| bucket["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), number("operations"), "{object}");
    assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(object["fairness"].is_null(), object["scenario"] != "contended", "{object}");
}

/// Every figure of every scenario is in the text, and what to make of it.
fn is_a_report(text: &str) {
    for scenario in ALL {
        assert!(text.lines().any(|line| line.starts_with(scenario)), "{text}");
    }
    for (figure, count) in
        [("operations", 3), ("per second", 3), ("p50", 3), ("p99.9", 3), ("max ", 3), ("fairness", 1)]
    {
        assert_eq!(text.matches(figure).count(), count, "{figure} in {text}");
    }
    assert!(text.contains("compare only what ran in the same minute") && text.contains('#'), "{text}");
}

/// Nobody holds or waits for anything on the store.
fn is_at_rest(url: &str) {
    let held = Locks::connect(url).unwrap().list("*").unwrap();
    assert!(held.is_empty(), "{held:?}");
}

#[test]
fn figures_of_sqlite_are_printed_and_nothing_is_left() {
    let stage = Stage::new();
    let outcome = stage.line("bench --for 0.2s").run().is(0).silent();
    assert!(outcome.out.starts_with(&stage.store()) && outcome.out.is_ascii(), "{outcome:?}");
    is_a_report(&outcome.out);
    is_at_rest(&stage.store());
}

#[test]
fn figures_of_redis_are_printed_and_nothing_is_left() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    let line = |words: &str| stage.line("bench --for 0.2s").words(words).env("BANDOG_STORE", &server.url());
    is_a_report(&line("").run().is(0).silent().out);
    let outcome = line("--yes --json").run().is(0).silent();
    let objects = objects(&outcome);
    assert_eq!(scenarios(&objects), ALL);
    objects.iter().for_each(is_sound);
    is_at_rest(&server.url());
    // What stays for the retention has an end.
    let keys: Vec<String> = server.run("KEYS *");
    for key in keys {
        let left: i64 = server.run(&format!("PTTL {key}"));
        assert!((-2..=60_000).contains(&left) && left != -1, "{key} stays for {left} ms");
    }
}

#[test]
fn a_redis_server_in_use_is_left_alone_without_a_yes() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    let line =
        |words: &str| stage.line("bench --for 0.1s --only uncontended").words(words).env("BANDOG_STORE", &server.url());
    let locks = Locks::connect(&server.url()).unwrap();
    let guard = locks.mutex("order:1001").acquire().unwrap();
    line("").run().is(64).prints("").says("is in use: somebody holds or waits for order:1001.");
    line("--yes").run().is(0).silent();
    guard.release().unwrap();
    let _: () = server.run("FLUSHALL");
    line("").run().is(0).silent();
    line("").run().is(64).prints("").says("is not empty: it has a key (locks that ended a moment ago leave one each).");
    let _: () = server.run("FLUSHALL");
    let _: () = server.run("DEBUG POPULATE 20000");
    line("").run().is(64).prints("").says("is not empty: it has 20,000 keys.");
}

/// Waits until a scenario on the lock `mine` has had turns: more grants than there are before the first that counts.
fn await_turns(url: &str, scenario: &str) {
    let locks = Locks::connect(url).unwrap();
    let wanted = if scenario == "contended" { 1 } else { 6 };
    let mut grants = std::collections::BTreeSet::new();
    until("some turns", || {
        grants.extend(locks.inspect(format!("mine:{scenario}")).unwrap().map(|info| info.record.last));
        (grants.len() >= wanted).then_some(())
    });
}

#[test]
fn ctrl_c_ends_it_early_with_what_it_has_and_nothing_held() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    for url in [stage.store(), server.url()] {
        for scenario in ALL {
            let line =
                stage.line("bench --yes --for 1h --name mine --json --only").arg(scenario).env("BANDOG_STORE", &url);
            let running = line.start();
            await_turns(&url, scenario);
            running.signal(Signal::INT);
            let outcome = running.wait().is(130);
            let objects = objects(&outcome);
            assert_eq!(scenarios(&objects), [scenario], "{outcome:?}");
            assert_eq!(objects[0]["complete"], false, "{outcome:?}");
            // What the tasks of one process pass on, the store does not see: there may have been no turn yet.
            assert!(scenario == "contended" || objects[0]["operations"].as_u64() > Some(0), "{outcome:?}");
            is_at_rest(&url);
        }
    }
}

#[test]
fn ctrl_c_leaves_out_what_has_not_begun() {
    let stage = Stage::new();
    let running = stage.line("bench --for 1h").start();
    until("it runs", || (!Locks::connect(&stage.store()).unwrap().list("*").unwrap().is_empty()).then_some(()));
    running.signal(Signal::TERM);
    let outcome = running.wait().is(143);
    assert!(!outcome.out.contains("hand-off"), "{outcome:?}");
    is_at_rest(&stage.store());
}

#[test]
fn a_store_that_goes_away_is_an_error_and_not_a_figure() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    let url = format!("{}?unavailable_after=1s", server.url());
    let running = stage.line("bench --for 1h --name mine --only uncontended").env("BANDOG_STORE", &url).start();
    let locks = Locks::connect(&server.url()).unwrap();
    until("it runs", || locks.inspect("mine:uncontended").unwrap());
    server.kill();
    running.wait().is(69).says("bandog explain unavailable").done();
}

/// Runs it at a terminal of 60 columns and types an answer to its question; its code and all that was shown.
fn at_a_terminal(stage: &Stage, words: &str, answer: &str) -> (Option<i32>, String) {
    let line = stage.line(words).env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    let outcome = line.at_terminal(60, answer);
    (outcome.code, outcome.out)
}

/// What is not plainly this machine counts as another; Linux takes this address to the server all the same.
#[cfg(target_os = "linux")]
#[test]
fn a_server_on_another_machine_is_left_alone_without_a_yes() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    let url = format!("redis://0.0.0.0:{}", server.port);
    let line = |words: &str| stage.line("bench --for 0.1s --only uncontended").words(words).env("BANDOG_STORE", &url);
    line("").run().is(64).prints("").says("is on another machine, and what else it serves cannot be seen from here.");
    line("-y").run().is(0).silent().done();
}

#[test]
fn a_terminal_is_asked_and_shows_how_far_it_is() {
    let stage = Stage::new();
    let (code, shown) = at_a_terminal(&stage, "bench --for 0.5s --only contended", "");
    assert_eq!(code, Some(0), "an empty store needs no question: {shown}");
    assert!(!shown.contains("[y/N]") && shown.contains("contended   ") && shown.contains('█'), "{shown}");
    let _job = stage.hold("");
    let (code, shown) = at_a_terminal(&stage, "bench --for 0.1s --only contended", "y\n");
    assert!(code == Some(0) && shown.contains("is in use") && shown.contains("fairness"), "{shown}");
    for no in ["\n", "n\n", "\x04"] {
        let (code, shown) = at_a_terminal(&stage, "bench --for 0.1s", no);
        assert!(code == Some(1) && shown.contains("not measured") && !shown.contains("fairness"), "{shown}");
    }
}
