//! A ticket is a secret, and the password of a store: neither is in an argument list, in the environment of a command, or in a message.

use std::fs;

use bandog_rig::Server;

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
        for url in ["redis://ann:s3cret@127.0.0.1:1/0", "redis//:s3cret@h", "redis://:s3 cr'et@h"] {
            for option in ["", "--json"] {
                let told = stage.line(line).words(option).arg(url).run().is(64);
                assert!(told.err.contains('…'), "{told:?}");
                assert!(!["s3", "cr", "et@"].iter().any(|piece| told.err.contains(piece)), "{told:?}");
            }
        }
    }
    let told = stage.line("run job").arg("--grace=redis://:s3cret@h").arg("true").run().is(64).says("--grace");
    assert!(!told.err.contains("s3cret"), "{told:?}");
    let told = stage.line("run job -- true").env("BANDOG_GRACE", "redis://:s3cret@h").run().is(64);
    assert!(!told.says("BANDOG_GRACE").err.contains("s3cret"));
}

#[test]
fn a_store_that_cannot_be_opened_shows_no_password() {
    let stage = Stage::new();
    for url in [
        "redis//:s3cret@h",
        "redis://:s3/cret@h",
        "redis://:s3#cret@h",
        "redis://:s3?cret@h",
        "redis://:s3@cr/et@h",
        "redis://ann:12/s3cret",
        "sqlite://:s3cret@h",
        "sqlite:/:s3cret@h",
        "rediz://:s3cret@h",
        "redis://:s3cret@127.0.0.1:1?max_hold=cret@h",
    ] {
        for line in ["run job -- true", "ls", "doctor"] {
            let told = stage.line(line).env("BANDOG_STORE", url).run();
            let shown = format!("{}{}", told.out, told.err);
            assert!(!shown.contains("s3") && !shown.contains("cret"), "{url}: {told:?}");
            assert_ne!(told.code, Some(0), "{url}: {told:?}");
        }
    }
}

#[test]
fn a_mistake_in_the_file_shows_no_password() {
    let stage = Stage::new();
    for text in [
        "store = redis://:s3cret@h",
        "store = \"redis://:s3cret@h",
        "store = 'redis://:s3cret@h'\nstore = 'redis://:s3cret@h'",
        "store = [\"redis://:s3cret@h\"]",
        "store = { url = \"redis://:s3cret@h\" }",
        "stor = \"redis://:s3cret@h\"",
        "grace = \"redis://:s3cret@h\"",
        "lease = \"redis://:s3cret@h\"",
        "\"redis://:s3cret@h\" = 1",
        "store \"redis://:s3cret@h\"",
        "store = \"redis://:s3cret@h?max_hold=cret@h\"",
    ] {
        stage.write("bad.toml", text);
        for option in ["", "--json"] {
            let line = stage.line(&format!("run {option} --config bad.toml job -- true")).without("BANDOG_STORE");
            let told = line.run();
            assert!(!told.err.contains("s3cret") && !told.err.contains("cret@h"), "{text}: {told:?}");
            assert_ne!(told.code, Some(0), "{text}: {told:?}");
        }
    }
}

#[test]
fn the_environment_of_a_command_has_no_password() {
    let Some(server) = Server::if_installed() else { return };
    let stage = Stage::new();
    server.run::<()>("ACL SETUSER ann on >s3cret ~* &* +@all");
    let address = server.url().strip_prefix("redis://").unwrap().to_owned();
    let line = stage.line("run job -- env").env("BANDOG_STORE", &format!("redis://ann:s3cret@{address}"));
    let outcome = line.run().is(0);
    assert!(outcome.out.contains(&format!("BANDOG_STORE=redis://{address}\n")), "{outcome:?}");
    assert!(!outcome.out.contains("s3cret"), "{outcome:?}");
    // The store of the command itself was another; what is there cannot be read, and is not passed on.
    let outcome =
        stage.line(&format!("run --store {} job -- env", stage.store())).env("BANDOG_STORE", "redis//:s3cret@h").run();
    assert!(!outcome.is(0).out.contains("BANDOG_STORE"));
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
