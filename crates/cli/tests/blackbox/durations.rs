//! Lengths of time as people write them.

use crate::stage::Stage;

#[test]
fn good_ones_are_taken() {
    let stage = Stage::new();
    for good in ["90s", "1h30m", "0.5", "500ms", "1m 30s", "2", "1day", ".5", "1e1"] {
        stage.line("run --wait").arg(good).words("job -- true").run().is(0).silent();
    }
}

#[test]
fn they_mean_what_they_say() {
    let stage = Stage::new();
    for (text, millis) in [("90s", 90_000), ("8m20s", 500_000), ("60.5", 60_500), ("75000ms", 75_000), ("100", 100_000)]
    {
        let taken = stage.line("acquire --json --lease").arg(text).arg(text).run().is(0);
        let ticket: serde_json::Value = serde_json::from_str(&taken.out).unwrap();
        assert_eq!(ticket["lease_ms"], millis, "{text}");
    }
}

#[test]
fn bad_ones_are_refused_by_every_option_that_takes_one() {
    let stage = Stage::new();
    for option in ["--wait", "--lease", "--max-hold", "--at-least", "--grace"] {
        for bad in ["soon", "", "-1", "5 apples", "1h30", "nan", "inf", "1e300", "0x10", "99999999999999999999s"] {
            let outcome = stage.line("run").arg(format!("{option}={bad}")).words("job -- touch ran").run().is(64);
            assert!(outcome.err.contains(option), "{outcome:?}");
        }
    }
    assert!(!stage.path("ran").exists());
}
