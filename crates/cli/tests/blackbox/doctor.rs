//! `bandog doctor` on files: what it prints, its exit codes, and cases for the table in `options`. On servers: `tests/doctor.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::stage::Stage;

/// A file that every user of the machine may read.
fn readable_by_all(stage: &Stage) -> String {
    stage.line("run job -- true").run().is(0);
    fs::set_permissions(stage.path("locks.db"), fs::Permissions::from_mode(0o644)).unwrap();
    stage.store()
}

pub(crate) fn strict(stage: &Stage, _: &str) {
    readable_by_all(stage);
    let usual = stage.line("doctor").run().is(0).silent();
    assert!(usual.out.contains("! permissions") && usual.out.contains("change: chmod o-rwx "), "{usual:?}");
    assert!(usual.out.contains(" 0 wrong"), "{usual:?}");
    let strict = stage.line("doctor --strict").run().is(1).silent();
    assert!(strict.out.trim_end().ends_with("--strict: only fine will do"), "{strict:?}");
}

pub(crate) fn store(stage: &Stage, _: &str) {
    let (fine, letter) = (stage.url("fine.db"), stage.url("letter.db"));
    stage.write("letter.db", &"no database at all, but long enough to look at".repeat(40));
    assert!(stage.line("doctor").words(&format!("--store {fine}")).run().is(0).out.starts_with(&fine));
    assert!(!stage.path("fine.db").exists(), "it makes no file");
    assert!(stage.line("doctor").env("BANDOG_STORE", &letter).run().is(1).out.contains("x database"));
    stage.line(&format!("doctor --store {fine}")).env("BANDOG_STORE", &letter).run().is(0);
    stage.line("doctor --store carrier-pigeon:coop").run().is(64).says("names no store");
    stage.line("doctor --store memory:").run().is(64).says("inside one process");
    let away = stage.line("doctor --store redis+unix:///nowhere/socket").run().is(69).says("cannot be reached");
    assert!(away.out.is_empty() && away.err.contains("do:"), "{away:?}");
}

pub(crate) fn config(stage: &Stage, _: &str) {
    stage.write("wrong.toml", "lease = 'soon'\n");
    stage.write("other.toml", &format!("store = '{}'\n", stage.url("other.db")));
    stage.line("doctor --config wrong.toml").run().is(64).says("wrong.toml: lease=\"soon\"");
    let line = stage.line("doctor").env("BANDOG_CONFIG", "other.toml").without("BANDOG_STORE");
    assert!(line.run().is(0).out.starts_with(&stage.url("other.db")));
}

pub(crate) fn json(stage: &Stage, _: &str) {
    let store = readable_by_all(stage);
    let outcome = stage.line("doctor --json").run().is(0).silent();
    let objects: Vec<serde_json::Value> = outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, remarks) = objects.split_last().unwrap();
    assert_eq!((&summary["event"], &summary["store"]), (&"summary".into(), &store.into()), "{summary}");
    assert_eq!((&summary["wrong"], &summary["exit"]), (&0.into(), &0.into()), "{summary}");
    assert_eq!(summary["fine"].as_u64().unwrap() + summary["risky"].as_u64().unwrap(), remarks.len() as u64);
    assert!(summary["note"].is_null(), "{summary}");
    let permissions = remarks.iter().find(|remark| remark["about"] == "permissions").unwrap();
    assert_eq!((&permissions["event"], &permissions["fitness"]), (&"remark".into(), &"risky".into()));
    for field in ["saw", "why", "change"] {
        assert!(permissions[field].is_string(), "{permissions}");
    }
    let away = stage.line("doctor --json --store redis+unix:///nowhere/socket").run().is(69);
    assert!(away.out.is_empty(), "{away:?}");
    assert_eq!(away.event("error")["kind"], "unavailable");
}

#[test]
fn signs_and_colours_follow_the_terminal() {
    let stage = Stage::new();
    let plain = stage.line("doctor").run().is(0).out;
    assert!(plain.contains("\n+ file ") && plain.is_ascii(), "{plain}");
    let signs = stage.line("doctor").env("LC_ALL", "C.UTF-8").run().is(0).out;
    assert!(signs.contains("\n✓ file ") && !signs.contains('\x1b'), "{signs}");
    let coloured = stage.line("doctor").env("CLICOLOR_FORCE", "1").run().is(0).out;
    assert!(coloured.contains("\x1b[32m+\x1b[0m file "), "{coloured:?}");
    assert!(!stage.line("doctor").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").run().is(0).out.contains('\x1b'));
}

#[test]
fn a_narrow_terminal_is_filled_and_not_left() {
    let stage = Stage::new();
    readable_by_all(&stage);
    let shown = stage.line("doctor").env("TERM", "xterm").at_terminal(50, "").is(0).out;
    let plain = shown.replace("\x1b[32m", "").replace("\x1b[33m", "").replace("\x1b[0m", "").replace("\x1b[2m", "");
    let long = |line: &&str| line.chars().count() > 50 && !line.contains("change: ") && !line.contains('/');
    assert_eq!(plain.lines().find(long), None, "{plain}");
    assert!(shown.contains("\x1b[33m!\x1b[0m permissions"), "{shown:?}");
}
