//! `bandog break`: who is told, who comes next and when, and what stays on record; cases for the table in `options`.

use serde_json::Value;

use crate::running::{Outcome, Running, until};
use crate::stage::Stage;

fn parsed(outcome: &Outcome<'_>) -> Value {
    serde_json::from_str(outcome.out.trim()).unwrap()
}

/// Holds `job` with a command that, asked to end, says so and takes its time: until the file `gate` is there.
fn slow(stage: &Stage) -> Running<'_> {
    let script = "trap 'echo told; while ! [ -e gate ]; do sleep 0.01; done; echo done; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let running = stage.line("run --lease 2m --grace 20s --label slow job").sh(script).start();
    running.await_out("ready");
    running
}

/// Waits for `job` behind it.
fn next(stage: &Stage) -> Running<'_> {
    let next = stage.line("run --label next job").sh("echo entered; read _; true").piped().start();
    stage.await_waiters(1);
    next
}

/// What `show` has on record.
fn audit(stage: &Stage) -> Value {
    parsed(&stage.line("show --json job").run().is(0))["revocations"].clone()
}

#[test]
fn the_next_one_enters_only_after_the_answer() {
    Stage::each(|stage| {
        let (holder, waiter) = (slow(stage), next(stage));
        let asks = stage.line("break job --yes --json --reason").arg("deploying v2").env("USER", "ann").start();
        holder.await_out("told");
        let seen = parsed(&stage.line("show --json job").run().is(0));
        assert_eq!(seen["holders"][0]["revoked"], "deploying v2", "{seen}");
        assert!(waiter.out().is_empty() && !asks.is_over(), "the holder has not answered yet");
        stage.write("gate", "");
        let lost = holder.wait().is(90);
        lost.says("job: lost: revoked: deploying v2; begun ")
            .says("somebody took it away with bandog break")
            .says("Nobody else enters");
        waiter.await_out("entered");
        let answer = parsed(&asks.wait().is(0));
        assert_eq!((&answer["holders"][0]["outcome"], &answer["now"]), (&"asked".into(), &false.into()), "{answer}");
        assert!(answer["given_up_ms"].is_u64() && answer["how"] == "given up", "{answer}");
        let audit = audit(stage);
        assert_eq!((&audit[0]["reason"], &audit[0]["now"]), (&"deploying v2".into(), &false.into()), "{audit}");
        assert_eq!((&audit[0]["who"]["label"], &audit[0]["by"]["label"]), (&"slow".into(), &"ann".into()), "{audit}");
        waiter.finish().is(0);
    });
}

#[test]
fn with_now_the_next_one_enters_while_the_holder_is_still_there() {
    Stage::each(|stage| {
        let (holder, waiter) = (slow(stage), next(stage));
        let told = stage.line("break job --yes --now --reason stuck").run().is(0);
        assert!(told.out.contains("was ended at once") && told.out.contains("now held by "), "{told:?}");
        assert!(told.out.contains("; the one before may still be at work"), "{told:?}");
        waiter.await_out("entered");
        holder.await_out("told");
        assert!(!holder.is_over(), "it still takes its time");
        stage.write("gate", "");
        holder.wait().is(90).says("revoked: stuck");
        let shown = stage.line("show job").run().is(0);
        assert!(shown.out.contains("ended at once") && shown.out.contains(": stuck"), "{shown:?}");
        waiter.finish().is(0);
    });
}

#[test]
fn whoever_breaks_is_named_also_where_no_variable_does() {
    let stage = Stage::new();
    let name = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    stage.line("acquire job").run().is(0);
    stage.line("break job --yes --now --reason test").without("USER").without("LOGNAME").run().is(0);
    assert_eq!(audit(&stage)[0]["by"]["label"], String::from_utf8_lossy(&name).trim());
}

#[test]
fn a_holder_that_never_answers_has_not_given_up() {
    Stage::each(|stage| {
        // A ticket whose holder hears nothing: nobody holds it in a process.
        let words = |json: &str| {
            stage.line("acquire --lease 1s job").run().is(0);
            stage.line(&format!("break job --yes {json} --reason test")).run().is(0)
        };
        let told = words("");
        assert!(told.out.contains("\ndid not answer; its lease ended after "), "{told:?}");
        assert!(told.out.ends_with("; free now; it may still be at work\n"), "{told:?}");
        let answer = parsed(&words("--json"));
        assert_eq!((&answer["how"], &answer["given_up_ms"]), (&"lease ended".into(), &Value::Null), "{answer}");
    });
}

#[test]
fn where_nobody_listens_it_is_said_at_once_until_when_that_takes() {
    let stage = Stage::new();
    for label in ["", "--label deploy"] {
        stage.line(&format!("acquire --lease 10m {label} job")).run().is(0);
        let asks = stage.line("break job --yes --reason test").start();
        let said = asks.await_err("it is a ticket, and no process listens");
        assert!(said.contains("its lease ends at 20") && said.contains(" UTC, in 9m"), "{said}");
        assert!(said.ends_with("--now would end the hold at once"), "{said}");
        asks.signal(rustix::process::Signal::INT);
        asks.wait().is(130).done();
        stage.line("break job --yes --now --reason test").run().is(0).silent().done();
    }
    // A process that is gone cannot be told from one that is slow to end.
    let mut dead = stage.hold("--lease 10m");
    dead.child.kill().unwrap();
    let asks = stage.line("break job --yes --json --reason test").start();
    let said: Value = serde_json::from_str(&asks.await_err("no answer yet: ")).unwrap();
    assert_eq!((&said["event"], &said["lock"]), (&"warning".into(), &"job".into()), "{said}");
    assert!(
        said["message"].as_str().unwrap().contains("its process is gone and does not listen; its lease ends at 20"),
        "{said}"
    );
}

#[test]
fn a_holder_that_another_ends_at_once_has_not_given_up() {
    Stage::each(|stage| {
        for json in ["", "--json"] {
            stage.line("acquire --lease 5m job").run().is(0);
            let asks = stage.line(&format!("break job --yes {json} --reason test")).env("USER", "ann").start();
            until("it was asked", || {
                let seen = parsed(&stage.line("show --json job").run().is(0));
                seen["holders"][0]["revoked"].is_string().then_some(())
            });
            stage.line("break job --yes --now --reason dead").env("USER", "bob").run().is(0);
            let told = asks.wait().is(0);
            if json.is_empty() {
                assert!(told.out.contains("\nended at once by ") && told.out.contains(" (bob) after "), "{told:?}");
                assert!(told.out.ends_with("; free now; it may still be at work\n"), "{told:?}");
            } else {
                let answer = parsed(&told);
                assert_eq!((&answer["how"], &answer["given_up_ms"]), (&"ended at once".into(), &Value::Null));
            }
        }
    });
}

pub(crate) fn name(stage: &Stage, _: &str) {
    let other = stage.line("run other").hold();
    let job = stage.hold("");
    stage.line("break job --yes --reason test").run().is(0);
    job.wait().is(90);
    assert!(!other.is_over());
    stage.line("break job --yes --reason test").run().is(3).says("job: nobody holds it, so there is nothing to break");
    stage.line("break nothing --yes --reason test").run().is(3).says("there is no such lock");
}

pub(crate) fn reason(stage: &Stage, _: &str) {
    let job = stage.hold("");
    stage.line("break job --yes").run().is(64).says("--reason");
    stage.line("break job --yes --reason").arg(" ").run().is(64).says("--reason is empty");
    stage.line("break job --yes --reason").arg("x".repeat(5000)).run().is(64).says("5000");
    assert!(!job.is_over());
    stage.line("break job --yes --reason").arg("a\x1b[2J\nb").run().is(0);
    let lost = job.wait().is(90).says("revoked: a\\u{1b}[2J\\nb");
    assert!(!lost.err.contains('\x1b'), "{lost:?}");
    let shown = stage.line("show job").run().is(0);
    assert!(shown.out.contains("a\\u{1b}[2J\\nb") && !shown.out.contains('\x1b'), "{shown:?}");
}

pub(crate) fn id(stage: &Stage, _: &str) {
    let (one, two) = (stage.line("run -s job").hold(), stage.line("run -s job").hold());
    let seen = parsed(&stage.line("show --json job").run().is(0));
    let of = |pid: u32| {
        let holders = seen["holders"].as_array().unwrap();
        let holder = holders.iter().find(|holder| holder["pid"] == pid).unwrap();
        holder["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (of(one.id()), of(two.id()));
    let wrong = stage.line("break job --yes --reason test --id 0000000000").run().is(3);
    assert!(wrong.err.contains("0000000000 does not hold it; held by ") && wrong.err.contains(&first), "{wrong:?}");
    stage.line(&format!("break job --yes --reason test --id {second}")).run().is(0);
    two.wait().is(90);
    assert!(!one.is_over());
    one.finish().is(0);
}

pub(crate) fn now(stage: &Stage, _: &str) {
    let job = stage.hold("");
    let told = stage.line("break job --yes --now --reason test").run().is(0);
    assert!(told.out.contains("was ended at once\nfree now; the one before may still be at work"), "{told:?}");
    assert!(stage.is_free());
    job.wait().is(90);
}

pub(crate) fn yes(stage: &Stage, _: &str) {
    let job = stage.hold("");
    stage.line("break job --reason test").run().is(64).says("there is no terminal").says("say --yes");
    assert!(!job.is_over());
    stage.line("break job -y --reason test").run().is(0);
    job.wait().is(90);
    let job = stage.hold("");
    stage.line("break job --yes --reason test").run().is(0);
    job.wait().is(90);
}

pub(crate) fn no_wait(stage: &Stage, _: &str) {
    let holder = slow(stage);
    let told = stage.line("break job --yes --no-wait --reason test").run().is(0);
    assert!(told.out.contains("was asked to give up; the lock passes on when it does, within "), "{told:?}");
    assert_eq!(told.out.lines().count(), 1, "{told:?}");
    let listed = stage.line("ls").run().is(0);
    assert!(listed.out.contains(" !1m") || listed.out.contains(" !2m"), "without colours too: {listed:?}");
    stage.write("gate", "");
    holder.wait().is(90);
}

pub(crate) fn store(stage: &Stage, _: &str) {
    let job = stage.hold("");
    let line = || stage.line("break job --yes --reason test");
    line().words(&format!("--store {}", stage.url("other.db"))).run().is(3);
    line().env("BANDOG_STORE", &stage.url("other.db")).run().is(3);
    assert!(!job.is_over());
    line().run().is(0);
    job.wait().is(90);
}

pub(crate) fn config(stage: &Stage, _: &str) {
    let job = stage.hold("");
    stage.write("wrong.toml", "lease = 'soon'\n");
    let line = || stage.line("break job --yes --reason test");
    line().words("--config wrong.toml").run().is(64).says("wrong.toml: lease=\"soon\"");
    line().env("BANDOG_CONFIG", "wrong.toml").run().is(64);
    assert!(!job.is_over());
}

pub(crate) fn json(stage: &Stage, _: &str) {
    let job = stage.hold("--label nightly");
    let answer = parsed(&stage.line("break job --yes --json --reason test").run().is(0));
    let holder = &answer["holders"][0];
    assert_eq!((&holder["label"], &holder["outcome"]), (&"nightly".into(), &"asked".into()), "{answer}");
    assert_eq!((&answer["reason"], &answer["held_by"]), (&"test".into(), &Value::Array(Vec::new())), "{answer}");
    job.wait().is(90);
    let error = stage.line("break job --yes --json --reason test").run().is(3).event("error");
    assert_eq!(error["kind"], "not_held");
}

#[test]
fn whoever_is_asked_sees_what_would_be_broken_and_may_say_no() {
    let stage = Stage::new();
    let job = stage.hold("--label nightly");
    let answered = |answer: &str, options: &str| {
        stage.line("break job --reason deploying").words(options).at_terminal(120, &format!("{answer}\n"))
    };
    let no = answered("n", "").is(1);
    assert!(no.out.contains("nightly") && no.out.contains("The holder is told, and the lock passes on"), "{no:?}");
    assert!(no.out.contains("Break this hold because \"deploying\"? [y/N]") && no.out.contains("not broken"), "{no:?}");
    let now = answered("", "--now").is(1);
    assert!(now.out.contains("Warning: with --now the lock passes on at once"), "{now:?}");
    assert!(!job.is_over());
    answered("yes", "").is(0);
    until("the end of the holder", || job.is_over().then_some(()));
    job.wait().is(90);
}

#[test]
fn a_holder_that_slept_through_it_is_told_when_it_wakes() {
    Stage::each(|stage| {
        let job = stage.hold("--lease 2m");
        job.signal(rustix::process::Signal::STOP);
        stage.line("break job --yes --now --reason frozen").run().is(0);
        job.signal(rustix::process::Signal::CONT);
        job.wait().is(90).says("lost: revoked: frozen").done();
        let ticket = stage.line("acquire job").run().is(0).out;
        stage.line("break job --yes --now --reason again").run().is(0);
        for word in ["renew", "release"] {
            stage.line(word).fed(&ticket).is(90).says("revoked: again").says("somebody took it away").done();
        }
    });
}

#[test]
fn an_interrupt_does_not_take_the_wish_back() {
    let stage = Stage::new();
    let holder = slow(&stage);
    let asks = stage.line("break job --yes --reason test").start();
    holder.await_out("told");
    asks.signal(rustix::process::Signal::INT);
    asks.wait().is(130).says("not waited for; what was asked stays asked").done();
    stage.write("gate", "");
    holder.wait().is(90);
}
