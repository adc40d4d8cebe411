//! The examination of real servers: a good one is fine, and each bad one is told what is bad about it, why, and what to change.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod doors;
mod good;
mod settings;
#[path = "../support/mod.rs"]
mod support;
mod trials;

use bandog_core::checkup::{Checkup, Fitness, Pace, Remark};
use bandog_redis::{RedisConfig, checkup};
use support::{Server, soon};

/// What a server for locks has, see docs/deployment.md.
const GOOD: &[&str] = &["--maxmemory", "256mb", "--appendonly", "yes", "--appendfsync", "everysec"];

fn good_but(more: &[&str]) -> Server {
    Server::with(&[GOOD, more].concat())
}

async fn examine(url: &str) -> Checkup {
    let (config, _) = RedisConfig::from_url(url).unwrap();
    let found = soon("the checkup", checkup(&config, &Pace::default())).await;
    let found = found.unwrap_or_else(|error| panic!("{url}: {error}"));
    let unadvised = found.remarks.iter().find(|remark| remark.fitness > Fitness::Fine && remark.change.is_none());
    assert_eq!(unadvised, None, "what is not fine has a line to change");
    found
}

/// The one remark that is expected to be so, with its reason. A server that is too old for it is told so beside it.
fn told<'a>(found: &'a Checkup, about: &str, fitness: Fitness, words: &[&str]) -> &'a Remark {
    let remark = found.about(about).unwrap_or_else(|| panic!("nothing about {about}: {found:#?}"));
    assert_eq!(remark.fitness, fitness, "{found:#?}");
    for word in words {
        assert!(remark.saw.contains(word), "{word:?} is not in {remark:#?}");
    }
    assert!(!remark.why.is_empty());
    remark
}

/// Those that are not fine. The version is not the tests' choice.
fn ailing(found: &Checkup) -> Vec<&'static str> {
    let ailing = found.remarks.iter().filter(|remark| remark.fitness > Fitness::Fine && remark.about != "version");
    ailing.map(|remark| remark.about).collect()
}
