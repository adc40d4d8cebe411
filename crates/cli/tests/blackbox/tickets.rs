//! Locks that outlive the process which took them: `acquire`, `renew` and `release`.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::running::until;
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
