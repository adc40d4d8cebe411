//! The suite as a store with I/O runs it: one `#[tokio::test]` per promise.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;

mod desk;

struct Right;

impl desk::Twist for Right {}

async fn bench() -> bandog_conformance::Bench {
    desk::bench(Arc::new(Right))
}

bandog_conformance::suite!(bench);
