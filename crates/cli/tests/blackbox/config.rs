//! Options outside the command line: which wins, and what is said about wrong ones.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::stage::{Line, Stage};

/// The lease that others see of a lock that was taken with the options and variables of `line`.
fn lease(stage: &Stage, line: Line<'_>) -> u64 {
    line.words("job").run().is(0);
    let busy = stage.line("run -n --json job -- true").run().is(75).event("busy");
    let left = busy["holders"][0]["lease_left_ms"].as_u64().unwrap();
    stage.removed_store();
    // Whole minutes, rounded up: what has passed since is far less.
    left.div_ceil(60_000)
}

#[test]
fn the_command_line_wins_over_the_url_the_environment_the_file_and_the_default() {
    let stage = Stage::new();
    let query = stage.url("locks.db?lease=2m");
    let file = "lease = '4m'\n";
    assert_eq!(lease(&stage, stage.line("acquire")), 1, "the default is 30 s");
    stage.write("config/bandog/config.toml", file);
    assert_eq!(lease(&stage, stage.line("acquire")), 4, "the file wins over the default");
    let line = stage.line("acquire").env("BANDOG_LEASE", "3m");
    assert_eq!(lease(&stage, line), 3, "the environment wins over the file");
    let line = stage.line("acquire").env("BANDOG_LEASE", "3m").env("BANDOG_STORE", &query);
    assert_eq!(lease(&stage, line), 2, "the query wins over the environment");
    let line = stage.line("acquire --lease 5m").env("BANDOG_LEASE", "3m").env("BANDOG_STORE", &query);
    assert_eq!(lease(&stage, line), 5, "the command line wins over all");
}

fn label(stage: &Stage, line: Line<'_>) -> String {
    line.words("job").run().is(0);
    let busy = stage.line("run -n --json job -- true").run().is(75).event("busy");
    stage.removed_store();
    let label = busy["holders"][0]["label"].as_str().unwrap();
    label.strip_prefix("ticket: ").expect("that it is a ticket is told, whoever gives the label").to_owned()
}

#[test]
fn the_label_has_the_same_order() {
    let stage = Stage::new();
    let query = stage.url("locks.db?label=query&lease=2m");
    stage.write("config/bandog/config.toml", "label = 'file'\n");
    assert_eq!(label(&stage, stage.line("acquire")), "file");
    assert_eq!(label(&stage, stage.line("acquire").env("BANDOG_LABEL", "variable")), "variable");
    let line = stage.line("acquire").env("BANDOG_LABEL", "variable").env("BANDOG_STORE", &query);
    assert_eq!(label(&stage, line), "query");
    let line = stage.line("acquire --label line").env("BANDOG_LABEL", "variable").env("BANDOG_STORE", &query);
    assert_eq!(label(&stage, line), "line");
}

#[test]
fn options_of_the_command_have_the_same_order() {
    let stage = Stage::new();
    let _job = stage.hold("");
    stage.write("config/bandog/config.toml", "conflict_exit_code = 33\nwait = 0.5\n");
    stage.line("run job -- true").run().is(33).says("busy after ");
    stage.line("acquire job").run().is(33);
    stage.line("run job -- true").env("BANDOG_CONFLICT_EXIT_CODE", "34").run().is(34);
    stage.line("run -E 35 job -- true").env("BANDOG_CONFLICT_EXIT_CODE", "34").run().is(35);
    let store = stage.url("locks.db?max_hold=200ms");
    stage.line(&format!("run --store {store} other -- sleep 1000")).env("BANDOG_MAX_HOLD", "1h").run().is(91);
    stage.line(&format!("run --store {store} --max-hold 1h other -- sleep 0.5")).run().is(0);
}

#[test]
fn the_store_can_be_in_the_file() {
    let stage = Stage::new();
    stage.write("config/bandog/config.toml", &format!("store = {:?}\n", stage.url("filed.db")));
    stage.line("run job -- true").without("BANDOG_STORE").run().is(0);
    assert!(stage.path("filed.db").exists());
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_file_option_and_value() {
    let stage = Stage::new();
    for (text, said) in [
        ("leese = 3", "bad.toml: there is no option \"leese\"; there are store, max_hold,"),
        ("lease = 'soon'", "bad.toml: lease=\"soon\" is not a duration such as 30s, 1h30m or 0.5 (seconds)"),
        ("fair = 'maybe'", "bad.toml: fair=\"maybe\" is not true or false"),
        ("grace = 'soon'", "bad.toml: grace = \"soon\" is wrong: not a duration such as 90s, 1h30m or 0.5 (seconds)"),
        ("on_lost = 'cry'", "bad.toml: on_lost = \"cry\" is wrong: not one of term, kill, notify, ignore"),
        (
            "conflict_exit_code = 256",
            "bad.toml: conflict_exit_code = \"256\" is wrong: not a whole number from 0 to 255",
        ),
        ("lease = [1, 2]", "bad.toml: lease is of the type array, which is not a text, a number or a boolean"),
        ("lease = soon", "bad.toml: line 1, column 9 is no TOML: "),
    ] {
        stage.write("bad.toml", text);
        stage.line("run --config bad.toml job -- touch ran").run().is(64).says(&format!("bandog: {said}"));
        let outcome = stage.line("run --json --config bad.toml job -- touch ran").run().is(64);
        assert!(outcome.event("error")["message"].as_str().unwrap().contains("bad.toml: "), "{outcome:?}");
    }
    stage.line("run --config missing.toml job -- true").run().is(64).says("bandog: missing.toml: No such file");
    assert!(!stage.path("ran").exists());
}

#[test]
fn what_is_wrong_in_the_environment_is_named_with_its_variable() {
    let stage = Stage::new();
    let outcome = stage.line("run job -- true").env("BANDOG_GRACE", "soon").run().is(64);
    outcome.says("'soon' for '--grace <DUR>'").says("The value is that of the environment variable BANDOG_GRACE.");
    let outcome = stage.line("run --grace soon job -- true").run().is(64);
    assert!(!outcome.err.contains("environment"), "{outcome:?}");
    let outcome = stage.line("run job -- true").env("BANDOG_LEASE", "soon").run().is(64);
    outcome.says("bandog: BANDOG_LEASE: lease=\"soon\" is not a duration");
    let mut line = stage.line("run job -- true");
    line.command.env("BANDOG_LEASE", OsString::from_vec(b"\xff".to_vec()));
    line.run().is(64).says("bandog: BANDOG_LEASE: lease=");
    let outcome = stage.line("run job -- true").env("BANDOG_STORE", &stage.url("locks.db?max_hold=soon")).run().is(64);
    outcome.says("max_hold=\"soon\": not a duration");
    let outcome = stage.line("run job -- true").env("BANDOG_STORE", &stage.url("locks.db?leese=3")).run().is(64);
    outcome.says("there is no option \"leese\"");
}
