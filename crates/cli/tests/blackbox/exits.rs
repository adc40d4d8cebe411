//! Every exit code has a case here; the walk over the table of codes fails for one that has none.

use bandog_cli::exit::TABLE;
use rustix::process::Signal;

use crate::stage::Stage;

/// One test per row, `the code as in the table: what it means = the case`.
macro_rules! codes {
    ($($code:literal: $name:ident = $case:ident;)*) => {
        const CODES: &[&str] = &[$($code),*];

        $(#[test]
        fn $name() {
            let stage = Stage::new();
            $case(&stage);
            let codes = stage.codes.borrow();
            assert!(codes.iter().any(|code| fits($code, *code)), "the case never ended with {}: {codes:?}", $code);
        })*
    };
}

codes! {
    "0..255": the_code_of_the_command_is_passed_on = own;
    "128+N": a_command_ended_by_a_signal_is_128_and_its_number = killed;
    "0": done_is_0 = done;
    "1": a_question_not_answered_with_yes_is_1 = declined;
    "1": a_store_that_is_not_fit_is_1 = unfit;
    "1": a_listing_that_is_not_whole_is_1 = incomplete;
    "3": a_lock_that_is_not_there_is_3 = no_lock;
    "64": wrong_usage_is_64 = usage;
    "65": a_descriptor_that_cannot_be_locked_is_65 = descriptor;
    "69": a_store_that_cannot_be_used_is_69 = unavailable;
    "75": busy_is_75 = busy;
    "90": a_lost_lease_is_90 = lost;
    "91": a_maximum_hold_exceeded_is_91 = max_hold;
    "126": a_command_that_cannot_be_executed_is_126 = not_executable;
    "127": a_command_that_is_not_there_is_127 = not_found;
    "130": an_interrupted_wait_is_130 = interrupted;
}

fn fits(key: &str, code: i32) -> bool {
    match key {
        "0..255" => (0..=255).contains(&code),
        "128+N" => code > 128,
        number => number == code.to_string(),
    }
}

#[test]
fn every_code_of_the_table_has_a_case() {
    let listed: Vec<&str> = TABLE.iter().map(|row| row.code).collect();
    assert_eq!(listed, CODES);
}

fn own(stage: &Stage) {
    for code in [0, 1, 64, 69, 75, 90, 91, 126, 127, 130, 200, 255] {
        stage.line("run job").sh(&format!("exit {code}")).run().is(code).silent();
    }
}

fn killed(stage: &Stage) {
    stage.line("run job").sh("kill -KILL $$").run().is(137);
    stage.line("run job").sh("kill -TERM $$").run().is(143);
    assert!(stage.is_free());
}

fn done(stage: &Stage) {
    let ticket = stage.line("acquire job").run().is(0).out;
    for line in [
        "ls",
        "ls nothing*",
        "show job",
        "doctor",
        "watch --for 0",
        "top --json --for 0",
        "bench --yes --for 0.1s --only uncontended",
    ] {
        stage.line(line).run().is(0);
    }
    for line in ["renew", "release"] {
        stage.line(line).fed(&ticket).is(0);
    }
}

fn declined(stage: &Stage) {
    let _job = stage.hold("");
    stage.line("break job --reason test").at_terminal(80, "no\n").is(1);
    let no = stage.line("bench --for 0.1s").at_terminal(80, "n\n").is(1);
    assert!(no.out.contains("the answer was not yes"), "{no:?}");
}

fn unfit(stage: &Stage) {
    stage.write("letter.db", &"no database at all, but long enough to look at".repeat(40));
    stage.line(&format!("doctor --store {}", stage.url("letter.db"))).run().is(1).silent();
}

fn incomplete(stage: &Stage) {
    for name in ["job", "other"] {
        stage.line("acquire").arg(name).run().is(0);
    }
    let file = rusqlite::Connection::open(stage.path("locks.db")).unwrap();
    file.execute("UPDATE lock SET record = zeroblob(8) WHERE name = 'job'", []).unwrap();
    let told = stage.line("ls").run().is(1).says("bandog: 1 could not be read and may be held (job: damaged)");
    assert!(told.out.contains("other"), "what can be read is shown: {told:?}");
    let told = stage.line("ls --json").run().is(1).event("listed");
    assert_eq!(told["unread"], serde_json::json!([{ "why": "damaged", "count": 1, "first": "job" }]));
}

fn no_lock(stage: &Stage) {
    stage.line("show nothing").run().is(3).says("locks.db is not there: nobody has used it yet").done();
    stage.line("run job -- true").run().is(0);
    let outcome = stage.line("show nothing").run().is(3).says("nothing: there is no such lock");
    assert!(outcome.out.is_empty(), "{outcome:?}");
    assert_eq!(stage.line("show --json nothing").run().is(3).event("error")["kind"], "no_such_lock");
}

fn usage(stage: &Stage) {
    for wrong in
        ["", "fly", "run", "run job", "run --wat job -- true", "run -n -w 3 job -- true", "run --store x job -- true"]
    {
        let outcome = stage.line(wrong).run().is(64);
        assert!(!outcome.err.is_empty(), "{outcome:?}");
    }
}

fn descriptor(stage: &Stage) {
    stage.dflock("9").run().is(65).says("dflock: 9: Bad file descriptor");
}

fn unavailable(stage: &Stage) {
    stage.line(&format!("run --store {} job -- true", stage.url(""))).run().is(69);
    let ticket = stage.line("acquire job").run().is(0).out;
    stage.line(&format!("release --store {}", stage.url(""))).fed(&ticket).is(69);
}

fn busy(stage: &Stage) {
    let _job = stage.hold("");
    stage.line("run -n job -- true").run().is(75);
    stage.line("run -w 0.5 job -- true").run().is(75);
    stage.line("acquire -n job").run().is(75).prints("");
}

fn lost(stage: &Stage) {
    let job = stage.hold("--lease 1s");
    stage.removed_store();
    job.wait().is(90);
}

fn max_hold(stage: &Stage) {
    stage.line("run --max-hold 0.2 job -- sleep 1000").run().is(91);
}

fn not_executable(stage: &Stage) {
    stage.write("text", "not a program");
    stage.line("run job -- ./text").run().is(126).says("./text");
    stage.line("run job -- .").run().is(126);
}

fn not_found(stage: &Stage) {
    stage.line("run job -- no-such-command-anywhere").run().is(127).says("no-such-command-anywhere: not found");
    stage.line("run job -- ./nothing").run().is(127);
}

fn interrupted(stage: &Stage) {
    let _job = stage.hold("");
    let waits = stage.line("run job -- true").start();
    waits.await_err("waited ");
    waits.signal(Signal::INT);
    waits.wait().is(130);
}
