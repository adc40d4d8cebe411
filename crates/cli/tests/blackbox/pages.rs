//! Help, version, manual pages and completions: cases for the table in `options`.

use std::path::Path;
use std::process::{Command, Stdio};

use bandog_cli::args::Cli;
use clap::CommandFactory;

use crate::stage::{BANDOG, Stage};

pub(crate) fn help(stage: &Stage, sub: &str) {
    let sub = if sub == "bandog" { "" } else { sub };
    for option in ["-h", "--help"] {
        let outcome = stage.line(sub).arg(option).run().is(0).silent();
        assert!(outcome.out.contains("Usage: ") && outcome.out.contains("--help"), "{outcome:?}");
        if matches!(sub, "" | "run" | "acquire") {
            assert!(outcome.out.contains("75      busy, or the wait is over (another code: -E)"), "{outcome:?}");
        }
        if matches!(sub, "renew" | "release") {
            assert!(outcome.out.contains("never from the"), "{outcome:?}");
        }
    }
}

pub(crate) fn version(stage: &Stage, _: &str) {
    for option in ["-V", "--version"] {
        stage.line(option).run().is(0).prints(&format!("bandog {}\n", env!("CARGO_PKG_VERSION")));
    }
}

pub(crate) fn completions(stage: &Stage, _: &str) {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stage.line(&format!("completions {shell}")).run().is(0).silent().out;
        for word in ["acquire", "completions", "max-hold", "on-lost", "bandog"] {
            assert!(script.contains(word), "{shell} knows nothing of {word}");
        }
        assert!(!script.contains("__supervise"), "{shell} offers what is not for people");
        if shell == "bash" {
            let path = stage.write("complete.bash", &script);
            let checked = Command::new("bash").arg("-n").arg(path).output();
            assert!(checked.is_ok_and(|checked| checked.status.success() && checked.stderr.is_empty()));
        }
    }
    stage.line("completions tcsh").run().is(64).says("tcsh");
}

#[test]
fn completions_know_locks_kinds_of_errors_and_subcommands() {
    if Command::new("bash").arg("--version").output().is_err() {
        return eprintln!("!!! SKIPPED: bash is not there");
    }
    let stage = Stage::new();
    let _job = stage.line("run nightly-report").hold();
    let script = stage.write("complete.bash", &stage.line("completions bash").run().is(0).out);
    let complete = |words: &str| {
        let asked = format!(
            "PATH=${{0%/*}}:$PATH; . {}; COMP_WORDS=({words} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _bandog_named bandog; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        stage
            .shell("exec bash -c \"$1\" \"$2\"")
            .arg("sh")
            .arg(asked)
            .arg(crate::stage::BANDOG)
            .run()
            .is(0)
            .silent()
            .out
    };
    for sub in ["show", "run", "break", "ls"] {
        assert!(complete(&format!("bandog {sub}")).lines().any(|line| line == "nightly-report"), "{sub}");
    }
    assert!(complete("bandog explain").lines().any(|line| line == "would_deadlock"));
    assert!(complete("bandog man").lines().any(|line| line == "doctor"));
    assert!(!complete("bandog doctor").contains("nightly-report"));
    for (shell, words) in
        [("zsh", ["_bandog_names", "would_deadlock"]), ("fish", ["bandog ls --json", "would_deadlock"])]
    {
        let script = stage.line(&format!("completions {shell}")).run().is(0).out;
        assert!(words.iter().all(|word| script.contains(word)), "{shell}");
        let Ok(checked) = Command::new(shell).arg("-n").arg(stage.write("complete.any", &script)).output() else {
            continue;
        };
        assert!(checked.status.success(), "{shell}: {checked:?}");
    }
}

pub(crate) fn man(stage: &Stage, _: &str) {
    let names: Vec<String> = Cli::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in [String::new()].into_iter().chain(names) {
        let page = stage.line(&format!("man {name}")).run().is(0).silent().out;
        let title = format!("bandog{}{name}", if name.is_empty() { "" } else { "-" });
        let title_line = page.lines().find(|line| line.starts_with(".TH ")).unwrap().to_owned();
        assert!(title_line.contains(&format!(" {title} ")), "{title_line}");
        for text in [".SH NAME", ".SH \"EXIT STATUS\"", "wrong arguments, options or configuration"] {
            assert!(page.contains(text), "{text:?} is not in the page of {title}");
        }
        let heads: Vec<&str> = page.lines().filter(|line| line.starts_with(".SH")).collect();
        assert!(!page.contains(".SH EXTRA"), "an empty heading: {heads:?}");
        rendered(stage, &page, &title);
    }
    stage.line("man fly").run().is(64).says("there is no subcommand \"fly\"; there are run, acquire,");
}

/// Renders the page, where there is something to render it with.
fn rendered(stage: &Stage, page: &str, title: &str) {
    let path = stage.write("page.1", page);
    let groff = Command::new("groff").args(["-man", "-Tascii", "-ww"]).arg(path).stdin(Stdio::null()).output();
    let Ok(groff) = groff else { return };
    let (text, complaints) = (String::from_utf8_lossy(&groff.stdout), String::from_utf8_lossy(&groff.stderr));
    assert!(groff.status.success() && complaints.is_empty(), "{title}: {complaints}");
    assert!(text.contains("EXIT STATUS") || text.contains("E\u{8}EX"), "{title}: {text}");
}

/// What fish offers, if it is installed.
#[test]
fn fish_completes_locks_kinds_and_options() {
    let stage = Stage::new();
    if stage.other("fish").arg("--version").command.output().is_err() {
        eprintln!("!!! SKIPPED: no fish here");
        return;
    }
    let script = stage.line("completions fish").run().is(0).out;
    let script = stage.write("bandog.fish", &script).display().to_string();
    let folder = Path::new(BANDOG).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let _one = stage.line("run nightly-report").hold();
    let _two = stage.line("run deploy").hold();
    let offers = |line: &str| {
        let asked = format!("source {script}; complete -C '{line}'");
        let told = stage.other("fish").arg("--no-config").arg("-c").arg(asked).env("PATH", &path).run().is(0);
        let words = told.out.lines().map(|line| line.split('\t').next().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    for sub in ["show", "wait", "break", "run"] {
        assert_eq!(offers(&format!("bandog {sub} ")), ["deploy", "nightly-report"], "{sub}");
    }
    assert_eq!(offers("bandog wait de"), ["deploy"]);
    assert_eq!(offers("bandog explain bu"), ["busy"]);
    assert_eq!(offers("bandog man wa"), ["wait", "watch"]);
    assert_eq!(offers("bandog acquire --ke"), ["--keep"]);
}
