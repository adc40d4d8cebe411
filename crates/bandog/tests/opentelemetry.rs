//! The example with OpenTelemetry, run to its end.

#[path = "../examples/opentelemetry.rs"]
#[allow(dead_code, reason = "the example's own main")]
mod example;

#[test]
fn the_example_shows_every_span_with_its_fields() {
    let tree = example::story().unwrap();
    println!("{tree}");
    let children = |root: &str| -> Vec<&str> {
        let after = tree.lines().skip_while(|line| !line.starts_with(root)).skip(1);
        after.take_while(|line| line.starts_with(' ')).collect()
    };
    for (who, way) in [("ann pays", "at_once"), ("bob pays", "hand_off")] {
        let spans: Vec<&str> = children(who).into_iter().filter(|line| !line.contains('·')).collect();
        let [acquire, hold] = spans[..] else { panic!("{who} has {spans:?}") };
        assert!(acquire.starts_with("  acquire ") && hold.starts_with("  hold "), "{spans:?}");
        for field in
            ["lock=order:1001", "store=memory:", "mode=exclusive", "token=", "holder=", &format!("phase={way}")]
        {
            assert!(acquire.contains(field), "{field}: {acquire}");
        }
        for field in ["lock=order:1001", "token=", "holder="] {
            assert!(hold.contains(field), "{field}: {hold}");
        }
        let after =
            |span: &str| children(who).into_iter().skip_while(|line| *line != span).nth(1).unwrap_or_default().trim();
        assert!(["· acquired", "· waiting"].contains(&after(acquire)), "{tree}");
        assert!(children(who).last().is_some_and(|line| line.ends_with("  · released")), "{tree}");
    }
    assert!(children("ann pays").iter().any(|line| line.contains("· renewed")), "renewed by another thread: {tree}");
    assert!(children("bob pays").iter().any(|line| line.contains("· waiting")), "{tree}");
}
