//! What every command prints, in words and as JSON, kept in `snapshots/`: the same on every store, unless its name says of which.
//!
//! Numbers, times, ids and names of the machine are replaced, and spaces that align columns are two: the pictures in `docs/captures` and the
//! tests of tables show those. After a change that is meant: `cargo insta review`, or run with `INSTA_UPDATE=always` and read the difference.

use serde_json::Value;

use crate::running::{Outcome, Running};
use crate::stage::Stage;

/// Replacements, in their order.
const FILTERS: &[(&str, &str)] = &[
    (r"redis\+unix://\S*/socket(\?db=0)?|sqlite:\S+?\.db", "[STORE]"),
    (r"uid \d+", "uid [NUMBER]"),
    (r"/tmp/bandog-test-\d+-\d+", "[FOLDER]"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)", "[TIME]"),
    (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "[TIME]"),
    (r#""(\w+_(?:ms|us))": [\d.]+"#, r#""$1": "[NUMBER]""#),
    (r#""(pid|operations|per_second|cores|fairness|count|to_us)": [\d.]+"#, r#""$1": "[NUMBER]""#),
    (r"\b\d{15,20}\b", "[TOKEN]"),
    (r"\b\d+m\d\ds\b|\b\d+(\.\d+)?(s|ms|µs|us)\b", "[LENGTH]"),
    (r"/\d+ \(", "/[PID] ("),
    (r"(\S)   +", "$1  "),
    (r"\[ID\]  exclusive  \[HOST\]  \d+", "[ID]  exclusive  [HOST]  [PID]"),
    (r"\[ID\]  \[HOST\]  \d+", "[ID]  [HOST]  [PID]"),
    (r#"the boot id (is the kernel|may be made up)[^"\n]*"#, "[BOOT]"),
];

/// A holder, and two who wait for it, one of them fair.
struct Cast<'a> {
    _holder: Running<'a>,
    _waiters: [Running<'a>; 2],
    ids: Vec<String>,
}

fn cast(stage: &Stage) -> Cast<'_> {
    let holder = stage.hold("--label nightly");
    let first = stage.line("run --label second job").sh("read _").piped().start();
    stage.await_waiters(1);
    let second = stage.line("run --label third --fair job").sh("read _").piped().start();
    stage.await_waiters(2);
    let ids = ids_of(stage);
    Cast { _holder: holder, _waiters: [first, second], ids }
}

/// The public ids of `job`'s holders and waiters.
fn ids_of(stage: &Stage) -> Vec<String> {
    let shown: Value = serde_json::from_str(&stage.line("show --json job").run().is(0).out).unwrap();
    let lists = ["holders", "waiters"].map(|list| shown[list].as_array().unwrap().clone()).concat();
    lists.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// Keeps or compares what was printed.
#[track_caller]
fn snapshot(name: &str, ids: &[String], text: &str) {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut text = ids.iter().fold(text.to_owned(), |text, id| text.replace(id, "[ID]"));
    for (before, after) in
        [(format!(" {host}/"), " [HOST]/"), (format!(" {host} "), " [HOST] "), (format!("\"{host}\""), "\"[HOST]\"")]
    {
        text = text.replace(&before, after);
    }
    insta::with_settings!({ filters => FILTERS.iter().copied(), omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

/// All that a command said: both streams, and its code.
fn whole(outcome: &Outcome<'_>) -> String {
    let stream = |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("--- {name}\n{text}") };
    format!("{}{}--- code {}", stream("out", &outcome.out), stream("err", &outcome.err), outcome.code.unwrap())
}

/// The same with every line of JSON spread out.
fn spread(outcome: &Outcome<'_>) -> String {
    let pretty = |text: &str| -> String {
        text.lines()
            .map(|line| {
                let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                serde_json::to_string_pretty(&value).unwrap() + "\n"
            })
            .collect()
    };
    let stream =
        |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("--- {name}\n{}", pretty(text)) };
    format!("{}{}--- code {}", stream("out", &outcome.out), stream("err", &outcome.err), outcome.code.unwrap())
}

#[test]
fn a_listing() {
    Stage::each(|stage| {
        let cast = cast(stage);
        snapshot("ls", &cast.ids, &whole(&stage.line("ls").run()));
        snapshot("ls-json", &cast.ids, &spread(&stage.line("ls --json").run()));
        snapshot("ls-nothing", &[], &whole(&stage.line("ls nothing*").run()));
    });
}

#[test]
fn one_lock() {
    Stage::each(|stage| {
        let cast = cast(stage);
        snapshot("show", &cast.ids, &whole(&stage.line("show job").run()));
        snapshot("show-json", &cast.ids, &spread(&stage.line("show --json job").run()));
        snapshot("show-nothing", &[], &whole(&stage.line("show nothing").run()));
        snapshot("show-nothing-json", &[], &spread(&stage.line("show --json nothing").run()));
    });
}

#[test]
fn a_break_and_what_stays_of_it() {
    Stage::each(|stage| {
        let cast = cast(stage);
        let broken = stage.line("break job --yes --no-wait --reason").arg("deploying v2").env("USER", "ann").run();
        snapshot("break", &cast.ids, &whole(&broken));
        let job = stage.line("run --label other other").hold();
        let json = stage.line("break other --yes --now --json --reason stuck").env("USER", "ann").run();
        let id: Value = serde_json::from_str(&json.out).unwrap();
        let ids = [id["holders"][0]["id"].as_str().unwrap().to_owned()];
        snapshot("break-json", &ids, &spread(&json));
        drop(job);
        snapshot("break-nothing", &[], &whole(&stage.line("break other --yes --reason again").run()));
        snapshot("show-broken", &ids, &whole(&stage.line("show other").run()));
    });
}

#[test]
fn errors_explain_themselves() {
    Stage::each(|stage| {
        let cast = cast(stage);
        snapshot("run-busy", &cast.ids, &whole(&stage.line("run -n job -- true").run()));
        snapshot("run-busy-json", &cast.ids, &spread(&stage.line("run -n --json job -- true").run()));
        snapshot("run-wrong-kind", &cast.ids, &whole(&stage.line("run -n --of 3 job -- true").run()));
        snapshot("run-not-found", &[], &whole(&stage.line("run x -- ./nothing").run()));
        snapshot("run-usage", &[], &whole(&stage.line("run --wat x -- true").run()));
        snapshot("run-max-hold", &[], &whole(&stage.line("run --max-hold 0.2 --grace 0.1 x -- sleep 1000").run()));
    });
}

#[test]
fn a_lost_lease_explains_itself() {
    Stage::each(|stage| {
        let job = stage.hold("");
        stage.revoke("deploying v2");
        let lost = job.wait();
        snapshot("run-lost", &[], &lost.err.lines().map(|line| format!("{line}\n")).collect::<String>());
    });
}

#[test]
fn tickets_as_json() {
    Stage::each(|stage| {
        let acquired = stage.line("acquire --json job").run();
        let ticket: Value = serde_json::from_str(&acquired.out).unwrap();
        let secrets = ["ticket", "holder"].map(|field| ticket[field].as_str().unwrap().to_owned());
        snapshot("acquire-json", &secrets, &spread(&acquired));
        snapshot("renew-json", &secrets, &spread(&stage.line("renew --json").fed(&secrets[0])));
        snapshot("release-json", &secrets, &spread(&stage.line("release --json").fed(&secrets[0])));
        snapshot("release-twice", &secrets, &whole(&stage.line("release").fed(&secrets[0])));
    });
}

#[test]
fn an_explanation() {
    let stage = Stage::new();
    snapshot("explain", &[], &whole(&stage.line("explain").run()));
    snapshot("explain-busy", &[], &whole(&stage.line("explain busy").run()));
}

#[test]
fn changes_as_they_happen() {
    Stage::each(|stage| {
        for (name, options) in
            [(if stage.server.is_some() { "watch-redis" } else { "watch-sqlite" }, ""), ("watch-json", "--json")]
        {
            let watch = stage.line(&format!("watch --every 50ms {options}")).start();
            if options.is_empty() {
                watch.await_err("watching")
            } else {
                watch.await_out("watching")
            };
            let job = stage.hold("--label nightly");
            watch.await_out("nightly");
            let next = stage.line("run --label second job").sh("read _").piped().start();
            watch.await_out("second");
            let ids = ids_of(stage);
            job.finish().is(0);
            watch.await_out("handed");
            watch.signal(rustix::process::Signal::INT);
            let seen = watch.wait().is(0);
            snapshot(name, &ids, &if options.is_empty() { whole(&seen) } else { spread(&seen) });
            next.finish();
        }
    });
}

/// What a machine happens to measure, or to be, is in no picture.
const MEASURED: &[&str] = &[
    "memory",
    "latency",
    "slow-commands",
    "clock",
    "locking",
    "delivery",
    "space",
    "syncing",
    "file-system",
    "version",
    "connections",
    "writing",
];

#[test]
fn an_examination() {
    for (store, stage) in
        [("sqlite", Some(Stage::new())), ("redis", Stage::on_redis(&["--maxmemory-policy", "allkeys-lru"]))]
    {
        let Some(stage) = stage else { continue };
        drop(stage.hold(""));
        let seen = stage.line("doctor").run().is(0);
        let blocks = seen
            .out
            .rsplit_once("\n\n")
            .unwrap()
            .0
            .replace("\n?", "\n\u{0}?")
            .replace("\n+", "\n\u{0}+")
            .replace("\n!", "\n\u{0}!");
        let is_measured =
            |block: &&str| !MEASURED.iter().any(|about| block.get(2..).is_some_and(|rest| rest.starts_with(about)));
        let kept: String = blocks.split('\u{0}').filter(is_measured).collect();
        snapshot(&format!("doctor-{store}"), &[], &kept);
        let mut objects: Vec<Value> = seen_json(&stage.line("doctor --json").run().is(0));
        objects.retain(|object| object["about"].as_str().is_some_and(|about| !MEASURED.contains(&about)));
        snapshot(&format!("doctor-{store}-json"), &[], &serde_json::to_string_pretty(&objects).unwrap());
    }
}

#[test]
fn a_measurement() {
    Stage::each(|stage| {
        let shape = |outcome: &Outcome<'_>| -> String {
            let first = |line: &str| {
                line.trim_start()
                    .chars()
                    .take_while(|sign| !sign.is_ascii_digit())
                    .collect::<String>()
                    .trim_end()
                    .to_owned()
            };
            outcome.out.lines().skip(1).map(first).filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
        };
        snapshot("bench", &[], &shape(&stage.line("bench --yes --for 0.2s").run().is(0)));
        let keys: Vec<Vec<String>> = seen_json(&stage.line("bench --yes --for 0.2s --json").run().is(0))
            .iter()
            .map(|object| object.as_object().unwrap().keys().cloned().collect())
            .collect();
        snapshot("bench-json", &[], &serde_json::to_string_pretty(&keys).unwrap());
    });
}

#[test]
fn the_whole_screen_as_json() {
    Stage::each(|stage| {
        let cast = cast(stage);
        let seen = seen_json(&stage.line("top --json --every 50ms --for 0.2s").run().is(0));
        let mut last = seen.last().unwrap().clone();
        // The first look finds everything; what came before it is not known.
        last["changes_per_s"] = Value::Null;
        last["rows"][0]["holds_ms"] = Value::Null;
        snapshot("top-json", &cast.ids, &serde_json::to_string_pretty(&last).unwrap());
    });
}

fn seen_json(outcome: &Outcome<'_>) -> Vec<Value> {
    outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
