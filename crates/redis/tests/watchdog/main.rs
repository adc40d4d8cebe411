//! The watchdog on real servers: each check fires when its fault is caused for real, and what it does about it works.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod connections;
mod holders;
mod records;
mod recoveries;
mod renewals;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use bandog::{Event, Events, LockConfig, Locks, Strategy};

use support::{hasty, ms, soon};

/// How often the watchdog of these tests makes its round.
const PERIOD: Duration = ms(200);

/// A client whose watchdog looks often. The lease is so long that no renewal comes to the help of a test.
async fn watched(url: &str) -> Locks {
    let config = LockConfig::builder().lease(Duration::from_secs(60)).watchdog_period(PERIOD).build().unwrap();
    hasty().defaults(config).connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// The next event that is so.
async fn next(events: &mut Events, what: &str, is_so: impl Fn(&Event) -> bool) -> Event {
    let looking = async {
        loop {
            let event = events.next().await.expect("the client lives");
            if is_so(&event) {
                return event;
            }
        }
    };
    soon(what, looking).await
}

/// The next recovery of this kind.
async fn recovered(events: &mut Events, strategy: Strategy) -> bool {
    let is_it = |event: &Event| matches!(event, Event::Recovered { strategy: done, .. } if *done == strategy);
    let event = next(events, "a recovery", is_it).await;
    matches!(event, Event::Recovered { worked: true, .. })
}
