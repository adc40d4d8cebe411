//! A machine without a server: tests fail there, unless somebody said that things may be missing.
#![allow(clippy::unwrap_used, reason = "parts of tests")]

use std::process::{Command, Output};

/// Names what a process of its own plays.
const PART: &str = "BANDOG_RIG_PART";
const NOWHERE: &str = "/nowhere/redis-server";

/// A test that needs a server, in a process that finds none.
fn plays(allowed: Option<&str>) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_test_that_needs_a_server", "--ignored", "--nocapture"]).env(PART, "child");
    child.env("BANDOG_REDIS_SERVER", NOWHERE).env_remove("BANDOG_TEST_INSTALL");
    if let Some(allowed) = allowed {
        child.env("BANDOG_TEST_INSTALL", allowed);
    }
    child.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_missing_server_fails_the_test() {
    for allowed in [None, Some("yes")] {
        let output = plays(allowed);
        assert!(!output.status.success(), "{}", said(&output));
        assert!(
            said(&output).contains(NOWHERE) && said(&output).contains("BANDOG_TEST_INSTALL=no"),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn a_missing_server_is_skipped_loudly_where_it_may_be_missing() {
    let output = plays(Some("no"));
    assert!(output.status.success() && said(&output).contains("!!! SKIPPED"), "{}", said(&output));
}

#[test]
#[ignore = "a part of other tests, which start it"]
fn a_test_that_needs_a_server() {
    if std::env::var_os(PART).is_some() {
        assert!(bandog_rig::Server::if_installed().is_none());
    }
}
