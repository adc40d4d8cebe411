//! A ticket is a secret: it is in no argument list, no environment of a command, and no message.

use std::fs;

use crate::running::until;
use crate::stage::Stage;

/// The argument lists of a process and all its descendants.
fn arguments(pid: u32) -> String {
    let mut text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        text += &arguments(child.parse().unwrap());
    }
    text
}

#[test]
fn no_process_has_the_ticket_in_its_arguments() {
    let stage = Stage::new();
    let ticket = stage.line("acquire job").run().is(0).out;
    for sub in ["renew", "release"] {
        let mut redeems = stage.line(sub).piped().start();
        redeems.feed(&ticket);
        let shown = until("it has its arguments", || Some(arguments(redeems.id())).filter(|text| text.contains(sub)));
        assert!(!shown.contains(ticket.trim()), "{shown}");
        redeems.finish().is(0);
    }
}

#[test]
fn a_ticket_cannot_be_given_as_an_argument() {
    let stage = Stage::new();
    let ticket = stage.line("acquire job").run().is(0).out;
    for sub in ["renew", "release"] {
        let told = stage.line(sub).arg(ticket.trim()).run().is(64).says("A ticket comes from BANDOG_TICKET");
        assert!(!told.err.contains(ticket.trim()), "{told:?}");
        let told = stage.line(sub).arg("--ticket").arg(ticket.trim()).run().is(64);
        assert!(!told.err.contains(ticket.trim()), "{told:?}");
    }
    assert!(!stage.is_free());
}

#[test]
fn the_password_of_a_store_is_not_repeated_where_it_was_not_expected() {
    let stage = Stage::new();
    for line in ["show job", "ls *", "break job --reason x"] {
        let told =
            stage.line(line).arg("redis://ann:s3cret@127.0.0.1:1/0").run().is(64).says("redis://…@127.0.0.1:1/0");
        assert!(!told.err.contains("s3cret") && !told.out.contains("s3cret"), "{told:?}");
    }
}

#[test]
fn the_processes_of_a_run_show_neither_token_nor_holder() {
    let stage = Stage::new();
    let job = stage.line("run -v job").piped().sh("echo ready $BANDOG_HOLDER $BANDOG_TOKEN; read _").start();
    let ready = job.await_out("ready");
    let shown = arguments(job.id());
    assert!(shown.contains("read _"), "the command is among them: {shown}");
    for value in ready.split_whitespace().skip(1) {
        assert!(!shown.contains(value), "{shown}");
    }
}

#[test]
fn the_environment_of_a_command_has_no_ticket() {
    let stage = Stage::new();
    let ticket = stage.line("acquire other").run().is(0).out;
    let outcome = stage.line("run -v job -- env").env("BANDOG_TICKET", ticket.trim()).run().is(0);
    assert!(!outcome.out.contains("bandog1-") && !outcome.err.contains("bandog1-"), "{outcome:?}");
}

#[test]
fn no_message_has_the_ticket() {
    let stage = Stage::new();
    for option in ["", "-v", "--json"] {
        let taken = stage.line(&format!("acquire {option} job")).run().is(0);
        let start = taken.out.find("bandog1-").unwrap();
        let ticket: String =
            taken.out[start..].chars().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '-').collect();
        let body = &ticket["bandog1-".len()..];
        let silent = |said: &str| assert!(!said.contains(&body[..16]), "{said}");
        silent(&taken.err);
        silent(&stage.line(&format!("run -n {option} job -- true")).run().is(75).err);
        for text in [ticket.clone(), format!("{ticket}00"), format!("x{ticket}"), body.to_owned()] {
            for sub in ["renew", "release"] {
                let outcome = stage.line(&format!("{sub} {option}")).fed(&text);
                silent(&outcome.err);
                silent(&outcome.out);
            }
        }
        // The first of these texts was the ticket itself: it is released, and saying so again is an error.
        silent(&stage.line(&format!("release {option}")).fed(&ticket).is(90).err);
        silent(&stage.line(&format!("release {option} --store {}", stage.url(""))).fed(&ticket).is(69).err);
    }
}
