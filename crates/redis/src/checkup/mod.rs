//! Examines a server: is it fit for locks, and what should be changed? `bandog::checkup` calls it.
//!
//! It works from the address and not from a store: a server that [`RedisStore::connect`](crate::RedisStore::connect) refuses is examined as far as it lets
//! us. Whatever cannot be seen is `Unknown`, and never fails the rest. It takes a few seconds at most, and leaves no key behind.
//!
//! ```text
//! Patient (one connection, one deadline) ─► Said (INFO, CONFIG) ─► judgements        server, memory, persistence, replicas, clients
//!         └───────────────────────────────► trials                                   permissions, door, latency, clock, scripts, news, leftovers
//! ```

mod clients;
mod clock;
mod door;
mod latency;
mod leftovers;
mod memory;
mod news;
mod patient;
mod permissions;
mod persistence;
mod population;
mod replicas;
mod said;
mod scripts;
mod server;
mod words;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bandog_core::checkup::{Check, Checkup, Pace, Remark};
use bandog_core::store::{StoreError, StoreErrorKind};

use crate::config::RedisConfig;

use patient::Patient;
pub use population::population;
use said::Said;

/// Everything that is looked at, in the order of the remarks. `docs/doctor.md` has a row for each.
pub(crate) const CHECKS: &[Check] = &[
    server::VERSION,
    server::ROLE,
    server::MODE,
    door::LOGIN,
    door::TLS,
    permissions::PERMISSIONS,
    memory::EVICTION,
    memory::MEMORY,
    persistence::PERSISTENCE,
    persistence::SAVING,
    replicas::REPLICATION,
    clients::TIMEOUT,
    clients::CONNECTIONS,
    latency::LATENCY,
    latency::SLOW_COMMANDS,
    clock::CLOCK,
    scripts::LOCKING,
    news::DELIVERY,
    news::NEWS_BUFFER,
    leftovers::KEYS,
];

/// Examines the server at an address.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use bandog_core::checkup::{Fitness, Pace};
/// use bandog_redis::{RedisConfig, checkup};
/// let (config, _) = RedisConfig::from_url("redis://127.0.0.1:6379")?;
/// let found = checkup(&config, &Pace::default()).await?;
/// assert!(found.worst() < Fitness::Wrong, "{found:?}");
/// # Ok(()) }
/// ```
///
/// # Errors
/// Only when the server cannot be reached at all. One that turns us away was reached: that is a remark.
///
/// # Cancel safety
/// Dropped in the middle, it may leave a probe's key for a few seconds.
pub async fn checkup(config: &RedisConfig, pace: &Pace) -> Result<Checkup, StoreError> {
    let mut found = Checkup::of(config.to_string());
    let patient = match Patient::open(config, pace).await {
        Ok(patient) => patient,
        Err(barred) => {
            found.remarks = door::barred(config, barred)?;
            return Ok(found);
        }
    };
    let said = Said::ask(&patient).await;
    if let Some(why) = said.silence() {
        let message = format!("{config} cannot be reached: {why}");
        return Err(StoreError::not_executed(StoreErrorKind::Unavailable, message));
    }
    // The clock is watched for a second: time enough for all the rest.
    let (clock, rest) = both(clock::watch(&patient), trials(&patient, &said)).await;
    found.remarks = rest;
    found.remarks.extend([
        server::version(&said),
        server::role(&said),
        server::mode(&said),
        door::tls(config),
        memory::eviction(&said),
        memory::headroom(&said),
        persistence::persistence(&said),
        persistence::saving(&said),
        replicas::replication(&said),
        clients::timeout(&said, pace),
        clients::connections(&said),
        news::buffer(&said),
        clock,
    ]);
    let place = |about: &str| CHECKS.iter().position(|check| check.about == about);
    found.remarks.sort_by_key(|remark| place(remark.about));
    Ok(found)
}

/// What is found out by doing it. One after the other: they would disturb each other's times.
async fn trials(patient: &Patient<'_>, said: &Said) -> Vec<Remark> {
    vec![
        latency::latency(patient).await,
        latency::slow_commands(patient).await,
        door::login(patient, said).await,
        permissions::permissions(patient, said).await,
        scripts::locking(patient).await,
        news::delivery(patient).await,
        leftovers::keys(patient).await,
    ]
}

/// Goes on with both until both are done.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other, mut done) = (pin!(one), pin!(other), (None, None));
    poll_fn(move |context| {
        if done.0.is_none() {
            done.0 = ready(one.as_mut().poll(context));
        }
        if done.1.is_none() {
            done.1 = ready(other.as_mut().poll(context));
        }
        match (done.0.take(), done.1.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            unfinished => {
                done = unfinished;
                Poll::Pending
            }
        }
    })
    .await
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_row_for_every_check() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md")).unwrap();
        for check in CHECKS {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", check.about)));
            assert!(row.is_some(), "docs/doctor.md has no row for {}", check.about);
        }
    }
}
