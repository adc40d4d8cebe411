//! What the command says, to people and to programs.

use std::os::unix::fs::PermissionsExt;

use crate::running::Outcome;
use crate::stage::Stage;

/// The text with every number replaced by `#`, and the host by `HOST`.
fn plain(text: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut plain = String::new();
    for sign in text.replace(&host, "HOST").chars() {
        let sign = if sign.is_ascii_digit() { '#' } else { sign };
        if sign != '#' || !plain.ends_with('#') {
            plain.push(sign);
        }
    }
    plain
}

#[test]
fn a_wait_away_from_a_terminal_is_one_line_per_holder() {
    let stage = Stage::new();
    let one = stage.hold("--label one");
    let two = stage.line("run --json --label two job").piped().sh("echo ready $$; read _; true").start();
    stage.await_waiters(1);
    let waits = stage.line("run job -- true").start();
    let first = plain(&waits.await_err("(one)"));
    assert!(first.starts_with("bandog: job: waited #.#s, held by HOST/# (one) for #.#s; "), "{first}");
    stage.await_waiters(2);
    one.finish().is(0);
    assert_eq!(
        plain(&waits.await_err("(two)")),
        "bandog: job: waited #.#s, held by HOST/# (two) for #.#s; next in line"
    );
    two.finish().is(0);
    let outcome = waits.wait().is(0);
    assert_eq!(outcome.err.lines().count(), 2, "{outcome:?}");
}

#[test]
fn busy_names_the_holder_its_label_and_since_when() {
    let stage = Stage::new();
    let job = stage.hold("--label nightly");
    let outcome = stage.line("run -n job -- true").run().is(75);
    let told = plain(&outcome.err);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "bandog: job: busy, held by HOST/# (nightly) for #.#s");
    assert!(lines[1].starts_with("  why:  another process holds it"), "{told}");
    assert!(lines[2].starts_with("  do:   wait for it") && lines[2].contains("bandog break job --reason"), "{told}");
    assert_eq!(lines[3..], ["  more: bandog explain busy"]);
    assert!(outcome.err.contains(&format!("/{} ", job.id())), "{outcome:?}");
    let outcome = stage.line("run -w 0.5 job -- true").run().is(75);
    let told = plain(&outcome.err);
    assert!(told.contains("bandog: job: busy after #.#s, held by HOST/# (nightly) for #.#s\n  why: "), "{told}");
    assert!(told.ends_with("  more: bandog explain timeout\n"), "{told}");
    let busy = stage.line("run --json -w 0.5 job -- true").run().is(75).event("busy");
    let holder = &busy["holders"][0];
    assert_eq!((&holder["label"], &holder["pid"]), (&"nightly".into(), &job.id().into()), "{busy}");
    assert!(holder["held_ms"].is_u64() && holder["host"].is_string() && busy["waited_ms"].is_u64(), "{busy}");
}

#[test]
fn advice_is_about_the_store_that_was_given() {
    let stage = Stage::new();
    let job = stage.hold("");
    let same = "bandog break job --reason TEXT; with the same --store.";
    for store in [format!("--store {}", stage.store()), format!("--store={}", stage.store())] {
        stage.line(&format!("run -n {store} job -- true")).run().is(75).says(same).done();
        let busy = stage.line(&format!("run -n --json {store} job -- true")).run().is(75).event("busy");
        assert!(busy["do"].as_str().unwrap().ends_with(same), "{busy}");
    }
    // One of the environment is that of the next command too; and what follows two dashes is not ours.
    let usual = stage.line("run -n job -- true --store x").run().is(75).says("bandog break job --reason TEXT.");
    assert!(!usual.err.contains("--store"), "{usual:?}");
    job.finish().is(0);
}

#[test]
fn a_wrong_command_line_is_explained_like_every_error() {
    let stage = Stage::new();
    let wrong = stage.line("break job").run().is(64).says("  --reason <TEXT>\n");
    let wrong =
        wrong.says("\nUsage: bandog break [OPTIONS] --reason <TEXT> <NAME>\n").says("\n  do:   see bandog help");
    assert!(wrong.err.ends_with("  more: bandog explain usage\n"), "{wrong:?}");
    assert!(!wrong.err.contains("For more information"), "{wrong:?}");
    let quiet = stage.line("run -q --wat job -- true").run().is(64);
    assert!(!quiet.err.contains("why: "), "{quiet:?}");
    let error = stage.line("break job --json").run().is(64).event("error");
    assert_eq!(error["message"], "the following required arguments were not provided: --reason <TEXT>");
    let error = stage.line("run --json --wat job").run().is(64).event("error");
    let said = "unexpected argument '--wat' found. tip: a similar argument exists: '--wait'. The command comes after two dashes: \
        bandog run NAME -- COMMAND [ARG]...";
    assert_eq!(error["message"], said);
}

#[test]
fn where_nobody_can_be_asked_the_advice_is_to_say_yes() {
    let stage = Stage::new();
    let job = stage.hold("");
    for line in ["break job --reason test", "bench --for 0.1s", "top"] {
        let outcome = stage.line(line).run().is(64).says("do:   say --yes where nobody can answer; ");
        outcome.says("bandog explain no_terminal").done();
    }
    job.finish().is(0);
}

#[test]
fn a_store_that_is_none_is_explained_with_those_that_the_command_takes() {
    let stage = Stage::new();
    for line in [
        "ls --store carrier-pigeon:coop",
        "doctor --store carrier-pigeon:coop",
        "run --store redis://h:99999 job -- true",
    ] {
        let wrong = stage.line(line).run().is(64).says("give an address such as redis://");
        assert!(!wrong.err.contains("memory:") && !wrong.err.contains("bounds"), "{wrong:?}");
    }
}

#[test]
fn an_address_that_is_nearly_one_is_told_as_it_should_be() {
    let stage = Stage::new();
    for (given, meant) in [
        ("/tmp/x.db", "sqlite:/tmp/x.db"),
        ("sqlite:///tmp/x.db", "sqlite:/tmp/x.db"),
        ("127.0.0.1:6379", "redis://127.0.0.1:6379"),
        ("reddis://db1", "redis://db1"),
        ("locks.db?leese=3", "sqlite:locks.db"),
    ] {
        for line in ["run job -- true", "ls", "doctor", "watch"] {
            let (line, rest) = line.split_once(" -- ").map_or((line, ""), |(line, _)| (line, "-- true"));
            let told = stage.line(line).arg(format!("--store={given}")).words(rest).run().is(64);
            told.says(&format!("  do:   write {meant}\n")).done();
        }
    }
    let wrong = stage.line("run job -- true").env("BANDOG_STORE", &stage.url("locks.db?leese=3")).run().is(64);
    let wrong = wrong.says("there is no option \"leese\"").says("  do:   write lease= instead of leese=\n");
    assert!(!wrong.err.contains("bound"), "{wrong:?}");
}

#[test]
fn a_message_says_why_only_where_it_adds_something_and_names_the_subcommand() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("folder")).unwrap();
    let folder = format!("run --store {} job -- true", stage.url("folder"));
    for (line, code, said) in [
        ("run --wat job -- true", 64, "unexpected argument '--wat' found"),
        ("run -w -5s job -- true", 64, "invalid value '-5s' for '-w': it cannot be below zero"),
        ("run -E foo job -- true", 64, "'--conflict-exit-code <N>': not a whole number from 0 to 255"),
        ("run --permits x --of 2 job -- true", 64, "'--permits <N>': not a whole number"),
        ("run --lease 1h job -- true", 64, "a lease of 1h is too long; the longest is 10m"),
        ("run --lease 0 job -- true", 64, "a lease of 0s is too short"),
        (&folder, 69, "is a directory"),
    ] {
        let told = stage.line(line).run().is(code).says(said);
        assert!(!told.err.contains("why: ") && !told.err.contains("password"), "{told:?}");
        let error = stage.line(&line.replacen("run", "run --json", 1)).run().is(code).event("error");
        assert!(error.get("why").is_none() && error["do"].is_string(), "{error}");
    }
    stage
        .line("run --wat job -- true")
        .run()
        .is(64)
        .says("do:   see bandog help run.\n  more: bandog explain usage\n")
        .done();
    stage.line("rn job -- true").run().is(64).says("Did you mean bandog run?").says("do:   see bandog help.").done();
    stage.line("explain busyy").run().is(64).says("do:   write bandog explain busy\n").done();
}

#[test]
fn a_port_without_tls_is_told_from_a_server_that_is_away() {
    if bandog_rig::is_missing() {
        return;
    }
    let stage = Stage::new();
    let server = bandog_rig::Server::start();
    let url = format!("rediss://127.0.0.1:{}?connect_timeout=300ms", server.port);
    let told = stage.line("run job -- true").env("BANDOG_STORE", &url).run().is(69);
    told.says("most likely this port has none").says("write redis:// if the server has no TLS").done();
}

#[test]
fn no_line_of_an_error_is_longer_than_the_terminal_is_wide() {
    let stage = Stage::new();
    let job = stage.hold("--label nightly-report");
    for (line, code) in
        [("run -n job -- true", 75), ("show --store carrier-pigeon:coop job", 64), ("run --wat job", 64)]
    {
        let shown = stage.line(line).at_terminal(44, "").is(code);
        assert!(shown.out.contains("bandog: ") && shown.out.contains("do: "), "{shown:?}");
        assert!(shown.out.lines().all(|line| line.trim_end().chars().count() < 44), "{shown:?}");
    }
    job.finish().is(0);
}

#[test]
fn verbose_tells_the_whole_story() {
    let stage = Stage::new();
    let outcome = stage.line("run -v job -- true").run().is(0);
    let story = "bandog: job: acquired after #.#s, token #\nbandog: job: started, process #\nbandog: job: released after #.#s; the command ended with # after #.#s\n";
    assert_eq!(plain(&outcome.err), story);
}

#[test]
fn json_lines_parse_whatever_happens() {
    let stage = Stage::new();
    let events = |outcome: &Outcome<'_>| -> Vec<String> {
        outcome.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    };
    let told = stage.line("run --json --max-hold 0.2 --grace 0.1 job -- sleep 1000").run().is(91);
    assert_eq!((&told.event("max_hold")["limit_ms"], &told.event("max_hold")["grace_ms"]), (&200.into(), &100.into()));
    assert_eq!(events(&told), ["acquired", "started", "max_hold", "released"]);
    let job = stage.hold("");
    let waits = stage.line("run --json --at-least 0.1 job -- true").start();
    waits.await_err("waiting");
    job.finish().is(0);
    assert_eq!(events(&waits.wait().is(0)), ["waiting", "acquired", "started", "at_least", "released"]);
    let job = stage.hold("--json");
    stage.revoke("deploying");
    let lost = job.wait().is(90).event("lost");
    assert!(lost["reason"].as_str().unwrap().contains("deploying"), "{lost}");
}

#[test]
fn a_store_that_cannot_be_used_is_named_with_its_path_and_the_reason() {
    let stage = Stage::new();
    stage.write("garbage.db", &"this is no database. ".repeat(100));
    std::fs::create_dir(stage.path("folder")).unwrap();
    stage.write("file", "");
    for (file, reason) in [
        ("garbage.db", "garbage.db is not a database; give bandog another path"),
        ("folder", "folder is a directory, not a file"),
        ("file/locks.db", "file leads over something that is no directory"),
    ] {
        let url = stage.url(file);
        let outcome = stage.line(&format!("run --store {url} job -- true")).run().is(69);
        let outcome = outcome.says(&format!("bandog: store {url} could not be opened: ")).says(reason);
        assert_eq!(outcome.err.lines().count(), 3, "{outcome:?}");
        let outcome = stage.line(&format!("run -q --store {url} job -- true")).run().is(69);
        assert_eq!(outcome.err.lines().count(), 1, "{outcome:?}");
        let error = stage.line(&format!("run --json --store {url} job -- true")).run().is(69).event("error");
        assert_eq!((&error["exit"], &error["lock"]), (&69.into(), &"job".into()));
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let stage = Stage::new();
    let folder = stage.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        // The superuser may write everywhere, except here.
        let outcome = stage.line("run --store sqlite:/proc/self/locks.db job -- true").run().is(69);
        return outcome.says("store sqlite:/proc/self/locks.db could not be opened: cannot create").done();
    }
    let url = stage.url("locked/locks.db");
    stage.line(&format!("run --store {url} job -- true")).run().is(69).says("Permission denied").says(&url).done();
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    let stage = Stage::new();
    let job = stage.line("run --label").arg("a\x1b[31m\nb\u{202e}").words("job").hold();
    let outcome = stage.line("run -n job -- true").run().is(75).says("(a\\u{1b}[31m\\nb");
    assert!(!outcome.err.contains('\x1b') && outcome.err.lines().count() == 4, "{outcome:?}");
    stage.line("run -n --json job -- true").run().is(75).event("busy");
    job.finish().is(0);
    let outcome = stage.line("run").arg("na\x1b[2Jme\n").words("-- true").run().is(64);
    assert!(!outcome.err.contains('\x1b') && outcome.err.lines().count() == 3, "{outcome:?}");
    let outcome = stage.line("run --json").arg("na\x1b[2Jme\n").words("-- true").run().is(64);
    assert_eq!(outcome.event("error")["lock"], "na\x1b[2Jme\n");
}

#[test]
fn a_closed_standard_error_stops_nothing() {
    let stage = Stage::new();
    let bandog = crate::stage::BANDOG;
    let job = stage.hold("");
    let script = format!("{bandog} run -v -w 0.4 job -- true 2>&-; echo $?; {bandog} run -v other -- echo fine 2>&-");
    let outcome = stage.line("run outer").sh(&script).start();
    outcome.await_out("fine");
    outcome.wait().is(0).prints("75\nfine\n");
    job.finish().is(0);
}
