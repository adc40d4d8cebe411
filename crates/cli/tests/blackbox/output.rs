//! `--verbose`, `--quiet` and `--json` of every subcommand that has them: cases for the table in `options`.

use serde_json::Value;

use crate::running::Outcome;
use crate::stage::Stage;

/// Runs the subcommand so that it succeeds.
fn works<'a>(stage: &'a Stage, sub: &str, options: &str) -> Outcome<'a> {
    let ticket = stage.line("acquire --of 100 tickets").run().is(0).out;
    let outcome = match sub {
        "run" => stage.line(&format!("run {options} job -- true")).run(),
        "acquire" => stage.line(&format!("acquire {options} --of 100 job-to-take")).run(),
        "wait" => stage.line(&format!("wait {options} job")).run(),
        _ => stage.line(&format!("{sub} {options}")).fed(&ticket),
    };
    outcome.is(0)
}

/// Runs the subcommand so that it fails: busy, or with a ticket that is over.
fn fails<'a>(stage: &'a Stage, sub: &str, options: &str) -> Outcome<'a> {
    let ticket = stage.line("acquire --of 100 tickets").run().is(0).out;
    stage.line("release").fed(&ticket).is(0);
    match sub {
        "run" => stage.line(&format!("run -n {options} held -- true")).run().is(75),
        "acquire" | "wait" => stage.line(&format!("{sub} -n {options} held")).run().is(75),
        _ => stage.line(&format!("{sub} {options}")).fed(&ticket).is(90),
    }
}

pub(crate) fn verbose(stage: &Stage, sub: &str) {
    let said = match sub {
        "run" => "bandog: job: acquired after ",
        "acquire" => "bandog: job-to-take: acquired after ",
        "wait" => "bandog: job: free after ",
        "renew" => "tickets is held for another 30s\n",
        _ => "tickets is released\n",
    };
    for option in ["-v", "--verbose"] {
        let outcome = works(stage, sub, option);
        assert!(format!("{}{}", outcome.err, outcome.out).contains(said), "{outcome:?}");
    }
    works(stage, sub, "").silent();
    stage.line(sub).words("-v -q job").run().is(64);
}

pub(crate) fn quiet(stage: &Stage, sub: &str) {
    let _held = stage.line("run held").hold();
    works(stage, sub, "-q").silent();
    for option in ["-q", "--quiet"] {
        let outcome = fails(stage, sub, option);
        let is_error = matches!(sub, "renew" | "release");
        assert_eq!(!outcome.err.is_empty(), is_error, "busy is no error, a lost ticket is: {outcome:?}");
    }
}

pub(crate) fn json(stage: &Stage, sub: &str) {
    let _held = stage.line("run held").hold();
    let outcome = works(stage, sub, "--json");
    let events: Vec<String> = outcome.events().iter().map(|event| event["event"].to_string()).collect();
    match sub {
        "run" => assert_eq!(events, ["\"acquired\"", "\"started\"", "\"released\""]),
        "acquire" => assert_eq!(events, ["\"acquired\""]),
        "wait" => assert_eq!(events, ["\"free\""]),
        _ => assert!(events.is_empty(), "{outcome:?}"),
    }
    for line in outcome.out.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert!(answer["lock"].is_string(), "{answer}");
    }
    assert_eq!(outcome.out.lines().count(), usize::from(!matches!(sub, "run" | "wait")), "{outcome:?}");
    let events = fails(stage, sub, "--json").events();
    assert_eq!(events.len(), 1, "{events:?}");
    match sub {
        "run" | "acquire" | "wait" => {
            assert_eq!((&events[0]["event"], &events[0]["lock"]), (&"busy".into(), &"held".into()));
        }
        _ => assert_eq!((&events[0]["exit"], &events[0]["lock"]), (&90.into(), &"tickets".into())),
    }
    let wrong = stage.line(sub).words("--json --wat").run().is(64);
    assert_eq!(wrong.event("error")["exit"], 64);
}
