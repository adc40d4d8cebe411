//! The examples in `contrib/` that start jobs: every command line in them is one that the program takes, and each leaves more time to the end
//! than its grace.

use std::fs;
use std::path::PathBuf;
use std::process::Command as Process;
use std::time::Duration;

use bandog_cli::args::{Cli, Command, Run};
use clap::Parser;

use crate::stage::Stage;

fn contrib(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../contrib", name].iter().collect();
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The line as `bandog run` understands it.
fn run(words: &[&str]) -> Run {
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    match cli.command {
        Command::Run(run) => run,
        other => panic!("{other:?}"),
    }
}

/// The value of `key` in a file of lines such as `key: value` or `key=value`.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key));
    found.unwrap_or_else(|| panic!("no {key}")).trim_start_matches([':', '=']).trim()
}

#[test]
fn the_unit_leaves_more_time_than_the_grace() {
    let unit = contrib("systemd/nightly-report.service");
    let words: Vec<&str> = value(&unit, "ExecStart").split_whitespace().collect();
    let run = run(&words);
    let stop = bandog::parse_duration(value(&unit, "TimeoutStopSec")).unwrap();
    assert!(run.grace.unwrap() < stop, "{run:?}");
    assert_eq!(value(&unit, "KillMode"), "mixed", "TERM to the group would reach the command beside bandog");
}

/// systemd looks for the programs that a unit names, so they are named as some that are there.
#[test]
fn systemd_finds_nothing_wrong() {
    if Process::new("systemd-analyze").arg("--version").output().is_err() {
        return;
    }
    let stage = Stage::new();
    let files = ["nightly-report.service", "nightly-report.timer"].map(|name| {
        let text = contrib(&format!("systemd/{name}")).replace("/usr/local/bin/bandog", "/bin/sh");
        stage.write(name, &text)
    });
    let told = Process::new("systemd-analyze").arg("verify").args(&files).output().unwrap();
    assert!(told.status.success() && told.stderr.is_empty(), "{told:?}");
}

#[test]
fn the_jobs_of_cron_run_as_they_are_written() {
    let stage = Stage::new();
    let _ = stage.dflock("");
    let mut jobs = 0;
    for line in
        contrib("cron/bandog.crontab").lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '*'))
    {
        let mut fields = line.split_whitespace();
        let times: Vec<&str> = fields.by_ref().take(5).collect();
        assert!(times.iter().all(|time| time.chars().all(|c| c.is_ascii_digit() || "*/".contains(c))), "{line}");
        assert_eq!(fields.next(), Some("root"), "{line}");
        let words: Vec<&str> = fields.collect();
        // What it would run is not there.
        let is_flock = words[0] == "dflock";
        let said = match is_flock {
            true => stage.dflock(&words[1..].join(" ")).run(),
            false => {
                run(&words);
                stage.line(&words[1..].join(" ").replace("--at-least 1m", "")).run()
            }
        };
        assert_eq!(said.code, Some(127), "{said:?}");
        jobs += 1;
    }
    assert_eq!(jobs, 3);
}

#[test]
fn the_pod_has_more_time_than_the_grace() {
    let pod = contrib("kubernetes/cronjob.yml");
    let list = value(&pod, "command").trim_matches(['[', ']']);
    let words: Vec<&str> = list.split(',').map(|word| word.trim().trim_matches('"')).collect();
    let run = run(&words);
    let stop: u64 = value(&pod, "terminationGracePeriodSeconds").parse().unwrap();
    assert!(run.grace.unwrap() < Duration::from_secs(stop), "{run:?}");
    assert_eq!((value(&pod, "apiVersion"), value(&pod, "kind")), ("batch/v1", "CronJob"));
}

#[test]
fn the_image_is_built_of_what_is_there() {
    let image = contrib("docker/Dockerfile");
    for (from, to) in [("target/release/bandog", "/bandog"), ("/state", "/state")] {
        assert!(image.contains(from) && image.contains(to), "{from}");
    }
    let compiler = value(&image, "FROM rust:").split(['-', '.']).nth(1).unwrap().parse::<u32>().unwrap();
    let floor = env!("CARGO_PKG_RUST_VERSION").split('.').nth(1).unwrap().parse::<u32>().unwrap();
    assert!(compiler >= floor, "1.{compiler} is older than 1.{floor}");
}

/// The package of Debian has a manual page for each subcommand, as the script that makes it finds them.
#[test]
fn the_package_has_every_manual_page() {
    let stage = Stage::new();
    let script = contrib("debian/build");
    let filter = script.lines().find_map(|line| line.split_once("--help | ")).unwrap().1.trim_end_matches(')');
    let help = stage.line("--help").run().is(0).out;
    let found = stage.shell(&format!("{filter} <<'EOT'\n{help}\nEOT")).run().is(0).out;
    let mut found: Vec<&str> = found.lines().filter(|name| *name != "help").collect();
    let command = <Cli as clap::CommandFactory>::command();
    let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
}
