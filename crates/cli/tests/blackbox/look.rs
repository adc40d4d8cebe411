//! `bandog ls`, `show` and `explain`: what they print, and cases for the table in `options`.

use bandog_rig::Server;
use serde_json::Value;

use crate::stage::Stage;

/// The subcommand's line about the lock `job`, without options.
fn words(sub: &str) -> &str {
    match sub {
        "show" => "show job",
        "break" => "break job --yes --reason test",
        _ => sub,
    }
}

/// What the subcommand says of `job` on whatever store the options and variables name: is it there?
fn sees_job(stage: &Stage, sub: &str, options: &str, variables: &[(&str, &str)]) -> bool {
    let mut line = stage.line(words(sub)).words(options);
    for (key, value) in variables {
        line = line.env(key, value);
    }
    let outcome = line.run();
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    outcome.out.contains("job")
}

pub(crate) fn store(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    let (usual, other) = (stage.store(), stage.url("other.db"));
    assert!(sees_job(stage, sub, "", &[]));
    assert!(!sees_job(stage, sub, &format!("--store {other}"), &[]));
    assert!(!sees_job(stage, sub, "", &[("BANDOG_STORE", &other)]));
    assert!(sees_job(stage, sub, &format!("--store {usual}"), &[("BANDOG_STORE", &other)]));
    stage.line(words(sub)).words("--store carrier-pigeon:coop").run().is(64).says("names no store");
}

pub(crate) fn config(stage: &Stage, sub: &str) {
    let _job = stage.hold("");
    stage.write("wrong.toml", "lease = 'soon'\n");
    stage.write("other.toml", &format!("store = '{}'\n", stage.url("other.db")));
    stage.line(words(sub)).words("--config wrong.toml").run().is(64).says("wrong.toml: lease=\"soon\"");
    stage.line(words(sub)).env("BANDOG_CONFIG", "wrong.toml").run().is(64).says("wrong.toml: lease=\"soon\"");
    let elsewhere = stage.line(words(sub)).words("--config other.toml").without("BANDOG_STORE").run();
    elsewhere.is(3).says("other.db is not there: nobody has used it yet").done();
    assert!(!stage.path("other.db").exists(), "looking makes no file");
}

pub(crate) fn json(stage: &Stage, sub: &str) {
    let job = stage.hold("--label nightly");
    let outcome = stage.line(words(sub)).arg("--json").run().is(0);
    let answer: Value = serde_json::from_str(outcome.out.trim()).unwrap();
    let holder = &answer["holders"][0];
    assert_eq!(
        (&answer["lock"], &holder["pid"], &holder["label"]),
        (&"job".into(), &job.id().into(), &"nightly".into())
    );
    assert!(holder["token"].is_string() && holder["held_ms"].is_u64() && holder["since"].is_string(), "{answer}");
    assert_eq!(stage.line(sub).words("--json --wat").run().is(64).event("error")["kind"], "usage");
}

/// Holds locks of these names, each from a process of its own.
fn hold_all<'a>(stage: &'a Stage, names: &[&str]) -> Vec<crate::running::Running<'a>> {
    names.iter().map(|name| stage.line(&format!("run --label of-{name} {name}")).hold()).collect()
}

/// The names that a listing shows, in its order.
fn listed(stage: &Stage, options: &str) -> Vec<String> {
    let outcome = stage.line("ls").words(options).run().is(0);
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    outcome.out.lines().skip(1).map(name).collect()
}

pub(crate) fn pattern(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["order:2", "order:1", "other"]);
    assert_eq!(listed(stage, ""), ["order:1", "order:2", "other"]);
    assert_eq!(listed(stage, "order:*"), ["order:1", "order:2"]);
    assert_eq!(listed(stage, "nothing*"), Vec::<String>::new());
    assert_eq!(listed(stage, "th"), ["other"], "text without a glob may stand anywhere, as in top");
    stage
        .line("ls nothing*")
        .run()
        .is(0)
        .says("no lock that somebody holds or waits for matches in sqlite:")
        .prints("");
    stage.line("ls [").run().is(64).says("[");
    stage.line("run x -- true").env("BANDOG_STORE", &stage.url("empty.db")).run().is(0);
    let empty = stage.line("ls").env("BANDOG_STORE", &stage.url("empty.db")).run().is(0);
    empty.says(&format!("no locks in {}: nobody holds or waits for any", stage.url("empty.db")));
}

pub(crate) fn host(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["one", "two"]);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_eq!(listed(stage, &format!("--host {host}")), ["one", "two"]);
    assert_eq!(listed(stage, "--host elsewhere*"), Vec::<String>::new());
    stage.line("ls --host [").run().is(64).says("--host: ");
}

pub(crate) fn label(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["one", "two"]);
    assert_eq!(listed(stage, "--label of-t*"), ["two"]);
}

pub(crate) fn contended(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["job", "other"]);
    assert_eq!(listed(stage, "--contended"), Vec::<String>::new());
    let _waits = stage.line("run job -- true").start();
    stage.await_waiters(1);
    assert_eq!(listed(stage, "--contended"), ["job"]);
}

pub(crate) fn over(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["job"]);
    assert_eq!(listed(stage, "--over 1h"), Vec::<String>::new());
    assert_eq!(listed(stage, "--over 0"), ["job"]);
    stage.line("ls --over soon").run().is(64).says("not a duration");
}

pub(crate) fn sort(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["job", "b", "a"]);
    let _waits = stage.line("run job -- true").start();
    stage.await_waiters(1);
    for (by, names) in [("name", ["a", "b", "job"]), ("waiters", ["job", "a", "b"]), ("held", ["job", "b", "a"])] {
        assert_eq!(listed(stage, &format!("--sort {by}")), names, "{by}");
    }
    // There is one host here, so this shows only that it is understood.
    assert_eq!(listed(stage, "--sort host").len(), 3);
    let _short = stage.line("run --lease 1s z").hold();
    assert_eq!(listed(stage, "--sort left")[0], "z");
    let first = stage.line("ls --sort waiters --limit 1").run().is(0).says("the first 1 of 4; more with --limit");
    assert!(first.out.contains("job") && first.out.lines().count() == 2, "{first:?}");
}

pub(crate) fn reverse(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["a", "b"]);
    assert_eq!(listed(stage, "--sort name --reverse"), ["b", "a"]);
    stage.line("ls --reverse").run().is(64).says("--sort");
}

pub(crate) fn limit(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["a", "b", "c"]);
    let stopped =
        stage.line("ls --limit 2").run().is(0).says("stopped after 2; go on with: bandog ls --limit 2 --after b\n");
    assert_eq!(stopped.out.lines().count(), 3, "{stopped:?}");
    assert_eq!(listed(stage, "--limit 3"), ["a", "b", "c"]);
    stage.line("ls --limit 0").run().is(64);
    let told = stage.line("ls --json --limit 2").run().is(0).event("listed");
    assert_eq!((&told["locks"], &told["after"]), (&2.into(), &"b".into()));
}

pub(crate) fn after(stage: &Stage, _: &str) {
    let _held = hold_all(stage, &["a", "b", "c"]);
    assert_eq!(listed(stage, "--after b"), ["c"]);
    assert_eq!(listed(stage, "--label of-[ac] --limit 1 --after a"), ["c"]);
    stage.line("ls --after b --sort name").run().is(64).says("cannot be used with");
}

#[test]
fn a_listing_says_how_a_lock_is_held_where_that_is_not_the_usual_way() {
    let stage = Stage::new();
    let _job = stage.hold("");
    assert!(!stage.line("ls").run().is(0).out.contains("KIND"), "all is as usual");
    let _read = stage.line("run -s read").hold();
    let _pool = stage.line("run --permits 2 --of 5 pool").hold();
    stage.line("acquire --label deploy trip").run().is(0);
    let listed = stage.line("ls").run().is(0);
    let line = |name: &str| listed.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("NAME").contains("  KIND "), "{listed:?}");
    for (name, kind) in [("read", " shared "), ("pool", " 2 of 5 "), ("trip", " ticket "), ("trip", " deploy ")] {
        assert!(line(name).contains(kind), "{name}: {listed:?}");
    }
    // What a row is about stays whole on a narrow terminal.
    let _long = stage.line("run --label nightly the-report-of-all-reports").hold();
    for (line, columns, is_short) in [("ls", 60, false), ("ls the-report", 50, true)] {
        let shown = stage.line(line).at_terminal(columns, "").is(0);
        let row = shown.out.lines().find(|line| line.starts_with("the-report")).unwrap();
        assert!(row.starts_with("the-report-of-all-reports  ") && row.contains('~') == is_short, "{shown:?}");
        assert!(shown.out.lines().all(|line| line.trim_end().chars().count() <= usize::from(columns)), "{shown:?}");
    }
    // Nor does a name of 37 letters hide how locks are held.
    let _longer = stage.line("run the-report-of-all-reports-of-the-year").hold();
    let shown = stage.line("ls").at_terminal(60, "").is(0);
    for told in ["  KIND ", " shared ", " 2 of 5 ", " ticket ", "the-report-of-all-reports-of-the"] {
        assert!(shown.out.contains(told), "{told}: {shown:?}");
    }
}

pub(crate) fn name(stage: &Stage, _: &str) {
    let _job = stage.hold("--label nightly");
    let shown = stage.line("show job").run().is(0).silent();
    assert!(shown.out.starts_with("job  held, nobody waits\n") && shown.out.contains("nightly"), "{shown:?}");
    stage.line("show").run().is(64);
    stage.line("show").arg("").run().is(64);
}

pub(crate) fn explain_json(stage: &Stage, _: &str) {
    let one: Value = serde_json::from_str(&stage.line("explain busy --json").run().is(0).out).unwrap();
    assert_eq!((&one["kind"], one["do"].is_string()), (&"busy".into(), true), "{one}");
    assert!(stage.line("explain --json").run().is(0).out.lines().count() > 20);
    assert_eq!(stage.line("explain nothing --json").run().is(64).event("error")["kind"], "usage");
}

#[test]
fn listing_reports_keys_that_it_cannot_read() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    let ls = |options: &str| stage.line("ls").words(options).env("BANDOG_STORE", &server.url());
    ls("").run().is(0).says("no locks");
    server.run::<()>("SADD lock:set member");
    server.run::<()>("SET lock:plain somebody");
    server.run::<()>("SET lock:other somebody");
    let told = ls("").run().is(1).says("bandog: 3 could not be read and may be held (");
    assert!(
        told.err.contains(" and 2 more: of a type that no lock has)") && !told.err.contains("no locks"),
        "{told:?}"
    );
    let told = ls("--json").run().is(1).event("listed");
    assert_eq!((&told["locks"], told["unread"].as_array().unwrap().len()), (&0.into(), 1), "{told}");
    assert_eq!((&told["unread"][0]["why"], &told["unread"][0]["count"]), (&"foreign".into(), &3.into()));
    assert!(["set", "plain", "other"].contains(&told["unread"][0]["first"].as_str().unwrap()));
    server.run::<()>("DEL lock:set lock:plain lock:other");
    let locks = bandog::blocking::Locks::connect(&server.url()).unwrap();
    assert_eq!(locks.list("*").unwrap().unread, []);
    server.run::<()>("SADD lock:set member");
    let _guard = locks.mutex("job").acquire().unwrap();
    let listed = locks.list("*").unwrap();
    assert_eq!((listed.len(), listed.unread.len(), listed.unread[0].why.as_str()), (1, 1, "foreign"));
    assert!(ls("").run().is(1).out.contains("job"), "what can be read is shown");
}

#[test]
fn a_listing_goes_on_where_names_have_odd_signs() {
    let stage = Stage::new();
    let names = [r"a\[x1", r"a\[x2", r"a\b1", "it's"];
    let _held: Vec<_> = names.iter().map(|name| stage.line("run").arg(*name).hold()).collect();
    let mut seen = Vec::new();
    let mut line = format!("{} ls --limit 1", crate::stage::BANDOG);
    for _ in names {
        let outcome = stage.shell(&line).run().is(0);
        seen.extend(outcome.out.lines().nth(1).map(|line| line.split("  ").next().unwrap().to_owned()));
        let Some((_, onward)) = outcome.err.split_once("go on with: bandog ") else { break };
        line = format!("{} {onward}", crate::stage::BANDOG);
    }
    assert_eq!(seen, names, "each once, as they are shown");
}

pub(crate) fn kind(stage: &Stage, _: &str) {
    stage.line("explain busy").run().is(0).silent().out.lines().next().map(|line| assert_eq!(line, "busy")).unwrap();
    let all = stage.line("explain").run().is(0).silent();
    assert!(all.out.contains("no_such_lock") && all.out.lines().count() > 20, "{all:?}");
    stage.line("explain nothing").run().is(64).says("there is no error \"nothing\"; there are busy, timeout,");
}

#[test]
fn a_reader_who_has_gone_ends_a_listing_without_a_word() {
    let stage = Stage::new();
    let _held = hold_all(&stage, &["a", "b"]);
    let script = format!("{{ {} ls; echo $? >&2; }} | true", crate::stage::BANDOG);
    assert_eq!(stage.shell(&script).run().is(0).err, "0\n");
}

#[test]
fn what_others_wrote_is_shown_and_not_obeyed() {
    let stage = Stage::new();
    let _job = stage.line("run --label").arg("a\x1b[31m\nb\u{202e}").words("job").hold();
    for line in ["ls", "show job"] {
        let outcome = stage.line(line).run().is(0);
        assert!(outcome.out.contains("a\\u{1b}[31m\\nb\\u{202e}") && !outcome.out.contains('\x1b'), "{outcome:?}");
    }
}

#[test]
fn colours_are_for_those_who_want_them() {
    let stage = Stage::new();
    let _job = stage.hold("");
    let coloured = |variables: &[(&str, &str)]| {
        let line = variables.iter().fold(stage.line("ls"), |line, (key, value)| line.env(key, value));
        line.run().is(0).out.contains('\x1b')
    };
    assert!(!coloured(&[]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
