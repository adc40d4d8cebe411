//! The command lines of the README, taken from the README and run as they stand there.
//!
//! Only what they run under a lock is made up (`./report.sh`, `pg_dump`, `sleep`), and `cargo run --bin bandog --` is the program that is tested. What
//! would install something, or play this test in itself, is not run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::process::Signal;

use crate::stage::{BANDOG, Line, Stage};

const README: &str = include_str!("../../README.md");

/// The lines of the shell in the README, without their comments.
fn lines() -> Vec<String> {
    let blocks = README.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let without_comment = |line: &str| line.split(" # ").next().unwrap().trim_end().to_owned();
    blocks.flat_map(|block| block.lines().map(without_comment)).filter(|line| !line.is_empty()).collect()
}

/// A directory with all that the lines need.
fn prepared() -> Stage {
    let stage = Stage::new();
    let program = |name: &str, text: &str| {
        let path = stage.write(name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in ["report.sh", "r.sh", "deploy.sh", "train.sh"] {
        program(name, &format!("echo {name} ran"));
    }
    program("bin/pg_dump", "echo dump of $1");
    program("bin/sleep", "exit 0");
    symlink(BANDOG, stage.path("bin/bandog")).unwrap();
    stage
}

fn shell<'a>(stage: &'a Stage, line: &str) -> Line<'a> {
    let path = format!("{}:{}", stage.path("bin").display(), std::env::var("PATH").unwrap());
    let line = line.replace("cargo run --bin bandog --", "bandog");
    let script = stage.path("line.sh");
    fs::write(&script, line).unwrap();
    // As printed, without a store: that of the home.
    stage.bash(&script).env("PATH", &path).without("BANDOG_STORE")
}

#[test]
fn the_lines_of_the_readme_do_what_it_says() {
    let stage = prepared();
    let mut ran = BTreeSet::new();
    let mut play = |line: &str| {
        ran.insert(line.to_owned());
        shell(&stage, line)
    };
    let all = lines();
    let starts = |start: &str| {
        let found: Vec<&String> = all.iter().filter(|line| line.starts_with(start)).collect();
        assert!(!found.is_empty(), "no line starts with {start}");
        found
    };
    for line in starts("cargo run --bin bandog -- run nightly") {
        assert!(play(line).run().is(0).silent().out.starts_with("nightly is mine, token "));
    }
    for line in starts("bandog run") {
        let outcome = play(line).run().is(0).silent();
        let expected = if line.contains("pg_dump") { "" } else { "ran\n" };
        assert!(outcome.out.ends_with(expected), "{outcome:?}");
    }
    assert!(stage.path("x.gz").exists());
    // One script, as the ticket is a variable.
    let tickets: Vec<&str> = [starts("ticket="), starts("bandog renew"), starts("bandog release")]
        .concat()
        .iter()
        .map(|line| line.as_str())
        .collect();
    let script = format!("set -e\n{}", tickets.join("\n"));
    shell(&stage, &script).run().is(0).silent();
    tickets.iter().for_each(|line| drop(play(line)));

    let held = shell(&stage, "exec bandog run nightly-report -- sh -c 'echo ready $$; read _; :'").piped().start();
    held.await_out("ready");
    assert!(play(starts("bandog ls")[0]).run().is(0).out.contains("nightly-report"));
    assert!(play(starts("bandog show")[0]).run().is(0).out.contains("nightly-report"));
    let watch = play(&format!("exec {}", starts("bandog watch")[0])).start();
    watch.await_err("watching order:*");
    watch.signal(Signal::INT);
    watch.wait().is(0).done();
    assert!(play(starts("bandog top")[0]).at_terminal(100, "q").is(0).out.contains("nightly-report"));
    let broken = play(starts("bandog break")[0]).at_terminal(100, "yes\n").is(0);
    assert!(broken.out.contains("nightly-report"), "{broken:?}");
    held.wait().is(90).says("stuck");
    play(starts("bandog doctor")[0]).run().is(0).done();
    play(starts("bandog bench")[0]).run().is(0).done();
    assert!(play(starts("bandog explain")[0]).run().is(0).out.contains("busy"));

    let ran: BTreeSet<&str> = ran.iter().map(|line| line.trim_start_matches("exec ")).collect();
    let not_run: Vec<&String> = all.iter().filter(|line| !ran.contains(line.as_str())).collect();
    assert_eq!(not_run, ["./.ci/test", "cargo install bandog-cli", "cargo add bandog"]);
}

#[test]
fn packages_named_in_the_readme_exist() {
    let manifest =
        |package: &str| fs::read_to_string(format!("{}/../{package}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(manifest("cli").contains("name = \"bandog-cli\"") && manifest("bandog").contains("name = \"bandog\""));
    assert!(
        manifest("bandog").contains("default = [\"redis\", \"macros\"]") && manifest("bandog").contains("\nsqlite = ")
    );
    let version = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0;
    assert!(README.contains(&format!("bandog = \"{version}\"")), "the README has another version than {version}");
    let first_screen: String = README.lines().take(40).collect::<Vec<_>>().join("\n");
    for told in [
        "cargo install bandog-cli",
        "cargo add bandog",
        "[dependencies]",
        "Linux only; elsewhere it refuses to compile and says so",
    ] {
        assert!(first_screen.contains(told), "{told}");
    }
    assert!(README.lines().count() <= 200);
}
