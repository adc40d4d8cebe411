//! Locks that outlive the process which took them: `acquire`, `renew` and `release`.

use std::fs::OpenOptions;
use std::process::Stdio;

use rustix::process::Signal;

use crate::running::{Running, until};
use crate::stage::{BANDOG, Stage};

/// The case of `--export` for the table in `options`.
pub(crate) fn export(stage: &Stage, _: &str) {
    let text = stage.line("acquire --export job").run().is(0).silent().out;
    assert!(text.starts_with("BANDOG_TICKET=bandog1-"), "{text}");
    assert!(!stage.is_free());
    let script = format!("eval \"$1\"; echo $BANDOG_TOKEN; {BANDOG} renew && {BANDOG} release");
    let outcome = stage.line("run outer -- sh -c").arg(script).arg("sh").arg(text).run().is(0).silent();
    assert!(outcome.out.trim().parse::<u64>().is_ok(), "{outcome:?}");
    assert!(stage.is_free());
}

/// A shell that takes `job` for as long as it lives, says `ready`, and goes on with `rest`.
fn kept<'a>(stage: &'a Stage, options: &str, rest: &str) -> Running<'a> {
    let script = format!("ticket=$({BANDOG} acquire --keep $$ {options} job) || exit; echo ready $$; {rest}");
    let shell = stage.shell(&script).piped().start();
    shell.await_out("ready");
    shell
}

/// The case of `--keep` for the table in `options`.
pub(crate) fn keep(stage: &Stage, _: &str) {
    let held_ms = |stage: &Stage| {
        let shown = stage.line("show --json job").run().is(0).json();
        shown["holders"][0]["held_ms"].as_u64().unwrap()
    };
    let shell = kept(stage, "--lease 500ms", "read _; :");
    until("it is held for three leases", || (held_ms(stage) > 1500).then_some(()));
    assert!(!stage.is_free());
    shell.finish().is(0).silent();
    until("it is free", || stage.is_free().then_some(()));
    stage.line("acquire --keep 0 job").run().is(64).says("--keep 0: no process to be watched");
    stage.line("acquire --keep 2147483647 job").run().is(64).says("No such process");
    assert!(stage.is_free());
}

#[test]
fn a_killed_shell_keeps_nothing() {
    Stage::each(|stage| {
        // Its lease is far longer than this test waits.
        let shell = kept(stage, "--lease 10m", "read _; :");
        assert!(!stage.is_free());
        shell.signal(Signal::KILL);
        until("it is free", || stage.is_free().then_some(()));
    });
}

#[test]
fn a_ticket_that_is_kept_is_released_by_its_owner_without_a_word() {
    Stage::each(|stage| {
        let release = format!(
            "{BANDOG} renew <<EOT && {BANDOG} release <<EOT\n$ticket\nEOT\n$ticket\nEOT\necho code $?; read _; :"
        );
        let shell = kept(stage, "--lease 1s", &release);
        assert_eq!(shell.await_out("code"), "code 0");
        assert!(stage.is_free());
        // Until the keeper has seen it.
        let _next = stage.hold("--lease 1s");
        until("the keeper has gone", || (keepers(stage) == 0).then_some(()));
        shell.finish().is(0).silent();
    });
}

#[test]
fn a_ticket_that_is_kept_and_lost_is_told() {
    Stage::each(|stage| {
        let renew = format!("read _; {BANDOG} renew <<EOT\n$ticket\nEOT\necho code $?; read _; :");
        let mut shell = kept(stage, "--lease 1s", &renew);
        stage.line("break --now --yes --reason deploying job").run().is(0).done();
        assert!(shell.await_err("bandog: lock \"job\" (").contains("deploying"));
        shell.feed("\n");
        assert_eq!(shell.await_out("code"), "code 90");
        shell.finish().is(0).done();
    });
}

fn keepers(stage: &Stage) -> usize {
    let home = format!("HOME={}\0", stage.path("").display().to_string().trim_end_matches('/'));
    let is_ours = |pid: &str| {
        let file = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let has = |bytes: Vec<u8>, text: &str| String::from_utf8_lossy(&bytes).contains(text);
        has(file("cmdline"), "\0__keep\0") && has(file("environ"), &home)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| entry.file_name().to_str().is_some_and(is_ours)).count()
}

#[test]
fn a_ticket_is_taken_renewed_and_released_by_three_processes() {
    let stage = Stage::new();
    let ticket = stage.line("acquire --lease 10m job").run().is(0).silent().out;
    assert_eq!(ticket.lines().count(), 1);
    assert!(!stage.is_free());
    stage.line("renew").fed(&ticket).is(0).silent().prints("");
    stage.line("renew -v").fed(&ticket).is(0).prints("job is held for another 10m\n");
    assert!(!stage.is_free());
    stage.line("release -v").fed(&ticket).is(0).prints("job is released\n");
    assert!(stage.is_free());
}

#[test]
fn a_renewal_starts_the_lease_anew() {
    let stage = Stage::new();
    let left = |stage: &Stage| {
        let busy = stage.line("run -n --json job -- true").run().is(75).event("busy");
        busy["holders"][0]["lease_left_ms"].as_u64().unwrap()
    };
    let ticket = stage.line("acquire --lease 10m job").run().is(0).out;
    let full = left(&stage);
    let less = until("some of the lease is gone", || Some(left(&stage)).filter(|less| *less + 200 < full));
    stage.line("renew").fed(&ticket).is(0);
    assert!(left(&stage) > less);
}

#[test]
fn a_ticket_comes_from_the_environment_too() {
    let stage = Stage::new();
    let ticket = stage.line("acquire job").run().is(0).out;
    stage.line("renew").env("BANDOG_TICKET", ticket.trim()).run().is(0);
    stage.line("release").env("BANDOG_TICKET", &format!(" {ticket}")).run().is(0);
    assert!(stage.is_free());
    let ticket = stage.line("acquire job").run().is(0).out;
    stage.line("release").env("BANDOG_TICKET", "").fed(&ticket).is(0);
}

#[test]
fn a_ticket_that_is_over_is_90() {
    let stage = Stage::new();
    let ticket = stage.line("acquire job").run().is(0).out;
    stage.line("release").fed(&ticket).is(0);
    let said = "it was released already";
    stage.line("release").fed(&ticket).is(90).says("bandog: lock \"job\" (sqlite:").says(said);
    let again = stage.line("renew").fed(&ticket).is(90).says(said).says("release a ticket once");
    assert!(!again.err.contains("forgot") && !again.err.contains("doctor"), "{again:?}");
    let ticket = stage.line("acquire --lease 1s job").run().is(0).out;
    // The next one has it when the lease is over, and not before.
    let next = stage.line("run job").sh("echo $BANDOG_TOKEN").run().is(0);
    assert!(next.out.trim().parse::<u64>().is_ok());
    for sub in ["renew", "release"] {
        let over = stage.line(sub).fed(&ticket).is(90).says("its lease of 1s ran out, at 20").says("more often");
        assert!(!over.err.contains("forgot"), "{over:?}");
    }
}

#[test]
fn what_is_no_ticket_is_64() {
    let stage = Stage::new();
    let ticket = stage.line("acquire job").run().is(0).out;
    let short = &ticket.trim()[..ticket.len() - 3];
    let changed = ticket.replace("bandog1-", "bandog1-ff");
    for sub in ["renew", "release"] {
        stage.line(sub).fed("").is(64).says("tickets start with \"bandog1-\"");
        stage.line(sub).fed("hello").is(64).says("tickets start with \"bandog1-\"");
        stage.line(sub).fed(short).is(64).says("this ticket is damaged");
        stage.line(sub).fed(&changed).is(64).says("this ticket is damaged");
        stage.line(sub).env("BANDOG_TICKET", "hello").run().is(64);
    }
    assert!(!stage.is_free(), "none of them released it");
}

#[test]
fn a_ticket_after_a_wait_has_its_whole_lease() {
    let stage = Stage::new();
    let job = stage.hold("");
    let waits = stage.line("acquire --lease 10m job").start();
    waits.await_err("waited ");
    job.finish().is(0);
    let ticket = waits.wait().is(0).out;
    let busy = stage.line("run -n --json job -- true").run().is(75).event("busy");
    assert!(busy["holders"][0]["lease_left_ms"].as_u64().unwrap() > 500_000, "{busy}");
    stage.line("release").fed(&ticket).is(0);
}

#[test]
fn tickets_of_shared_locks_and_permits_work_alike() {
    let stage = Stage::new();
    let one = stage.line("acquire -s job").run().is(0).out;
    let two = stage.line("acquire -n -s job").run().is(0).out;
    assert!(!stage.is_free());
    stage.line("release").fed(&one).is(0);
    assert!(!stage.is_free());
    stage.line("release").fed(&two).is(0);
    assert!(stage.is_free());
    let one = stage.line("acquire --permits 2 --of 3 pool").run().is(0).out;
    stage.line("acquire -n --permits 2 --of 3 pool").run().is(75);
    stage.line("release").fed(&one).is(0);
    stage.line("acquire -n --permits 2 --of 3 pool").run().is(0);
}

#[test]
fn a_ticket_that_cannot_be_printed_is_given_back() {
    let stage = Stage::new();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    for stdout in [closed(), full()] {
        let mut line = stage.line("acquire job");
        line.command.stdout(stdout).stderr(Stdio::piped());
        let output = line.command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(69), "{said}");
        assert!(said.contains("the ticket could not be printed (") && said.contains("; released again"), "{said}");
        assert!(stage.is_free());
    }
}

#[test]
fn two_tickets_that_differ_are_a_mistake() {
    let stage = Stage::new();
    let (outer, inner) = (stage.line("acquire outer").run().is(0).out, stage.line("acquire inner").run().is(0).out);
    let wrong = stage.line("release").env("BANDOG_TICKET", outer.trim()).fed(&inner).is(64);
    wrong.says("two tickets: BANDOG_TICKET has one for outer, standard input one for inner");
    stage.line("renew").env("BANDOG_TICKET", outer.trim()).fed(&outer).is(0);
    // What else stands there is somebody else's.
    let script = format!("echo 'not a ticket' | {{ {} release && cat; }}", crate::stage::BANDOG);
    stage.shell(&script).env("BANDOG_TICKET", outer.trim()).run().is(0).prints("not a ticket\n");
    stage.line("release").fed(&inner).is(0);
}

#[test]
fn a_ticket_that_nobody_would_get_is_not_taken() {
    let stage = Stage::new();
    for nowhere in ["> /dev/null", ">&-"] {
        let script = format!("{} acquire job {nowhere}", crate::stage::BANDOG);
        stage.shell(&script).run().is(64).says("the ticket would be lost");
    }
    assert!(stage.is_free());
}
