//! Whether others may mind: what is known of the store before anything is measured, and the question whether to go on.

use bandog::{Clock, LockName, Locks};
use bandog_redis::RedisConfig;

use super::units::grouped;
use super::{Plan, word};
use crate::args::Scenario;
use crate::ask;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::note::short;
use crate::say::write;
use crate::screen::{Screen, harmless};

/// Calls by which their time is told.
const PROBES: usize = 5;

/// Fewer keys than this may well be what is left of an earlier measurement.
const TRACES: u64 = 8;

/// Why a store is not ours alone.
#[derive(Debug, PartialEq, Eq)]
enum Company {
    /// Somebody holds or waits for this lock, and maybe others.
    Lock(LockName),
    /// So many keys, whoever they belong to.
    Keys(u64),
    /// A server on another machine.
    Elsewhere,
}

/// Goes on if nobody else can be seen there, or somebody at the terminal says so.
pub(crate) async fn check(locks: &Locks, url: &str, plan: &Plan) -> Result<(), Failure> {
    let store = locks.health().store;
    let Some(company) = look(locks, url, &store).await? else { return Ok(()) };
    let text = warning(&company, &harmless(&store), plan, calls(locks, plan).await?);
    if !ask::can_answer() {
        let why = "There is no terminal, so nobody can be asked whether this is meant; say --yes if it is.";
        return Err(Failure::new("no_terminal", Exit::Usage, format!("{text} {why}")));
    }
    write(&format!("{}\n", Screen::stderr().wrap(&format!("bandog: {text}"), 0)));
    if ask::agrees("Go on?") { Ok(()) } else { Err(declined()) }
}

fn declined() -> Failure {
    Failure::new("declined", Exit::Declined, "not measured: the answer was not yes")
}

async fn look(locks: &Locks, url: &str, store: &str) -> Result<Option<Company>, Failure> {
    let page = locks.scan("*").limit(1).next().await.map_err(|error| Failure::of(error.kind(), &error))?;
    if let Some(info) = page.into_iter().flatten().next() {
        return Ok(Some(Company::Lock(info.name)));
    }
    Ok(match keys(url).await {
        Some(keys @ 1..) => Some(Company::Keys(keys)),
        _ => is_elsewhere(store).then_some(Company::Elsewhere),
    })
}

/// Keys of a Redis server, as far as it tells.
async fn keys(url: &str) -> Option<u64> {
    let (config, _) = RedisConfig::from_url(url).ok()?;
    bandog_redis::population(&config).await.ok()?
}

/// Whether a store's address is that of another machine.
fn is_elsewhere(store: &str) -> bool {
    let Some(rest) = store.strip_prefix("redis://").or_else(|| store.strip_prefix("rediss://")) else { return false };
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => place.rsplit_once(':').map_or(place, |(host, _)| host),
    };
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    !(is_loopback || host == "localhost")
}

/// How many calls at most, by the time that the store takes for one that changes nothing: the quickest of a few.
async fn calls(locks: &Locks, plan: &Plan) -> Result<u64, Failure> {
    let (clock, name) = (Clock::system(), plan.lock(Scenario::Uncontended));
    let mut one = u128::MAX;
    for _ in 0..PROBES {
        let began = clock.now();
        locks.inspect(&name).await.map_err(|error| Failure::of(error.kind(), &error))?;
        one = one.min(clock.now().since(began).as_nanos().max(1));
    }
    let all = plan.length.as_nanos() * plan.scenarios.len() as u128;
    Ok(rounded(u64::try_from(all / one).unwrap_or(u64::MAX)))
}

/// One digit, upwards: no more is known.
fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10());
    number.div_ceil(unit).saturating_mul(unit)
}

fn warning(company: &Company, store: &str, plan: &Plan, calls: u64) -> String {
    let why = match company {
        Company::Lock(name) => format!("is in use: somebody holds or waits for {}", harmless(name.as_str())),
        Company::Keys(keys @ ..TRACES) => {
            let keys = if *keys == 1 { "a key".to_owned() } else { format!("{keys} keys") };
            format!("is not empty: it has {keys} (locks that ended a moment ago leave one each)")
        }
        Company::Keys(keys) => format!("is not empty: it has {} keys", grouped(*keys)),
        Company::Elsewhere => "is on another machine, and what else it serves cannot be seen from here".to_owned(),
    };
    let scenarios: Vec<&str> = plan.scenarios.iter().copied().map(word).collect();
    let (each, calls) = (short(plan.length), grouped(calls));
    let all = short(plan.length.saturating_mul(u32::try_from(scenarios.len()).unwrap_or(u32::MAX)));
    format!(
        "{store} {why}. bench would run {} there for {each} each, {all} in all: calls without pause, up to about {calls}, on locks whose names begin with {}. Others may wait longer for the store meanwhile.",
        scenarios.join(", "),
        harmless(&plan.prefix),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_servers_of_other_machines_are_elsewhere() {
        for here in ["sqlite:/a/b.db", "redis+unix:///run/redis.sock", "redis://127.0.0.1:6379", "redis://localhost/0"]
        {
            assert!(!is_elsewhere(here), "{here}");
        }
        for here in ["rediss://user@127.1.2.3:1/2", "redis://[::1]:6379", "redis://localhost:7"] {
            assert!(!is_elsewhere(here), "{here}");
        }
        for there in ["redis://db1", "redis://10.0.0.1:6379/3", "rediss://[fe80::1]:6379", "redis://localhost.example"]
        {
            assert!(is_elsewhere(there), "{there}");
        }
    }

    #[test]
    fn an_estimate_has_one_digit() {
        assert_eq!([0, 7, 10, 11, 58_123, 60_000].map(rounded), [0, 7, 10, 20, 60_000, 60_000]);
    }

    #[test]
    fn a_warning_says_where_what_and_how_long() {
        let plan = Plan {
            scenarios: vec![Scenario::Contended, Scenario::HandOff],
            length: Duration::from_secs(3),
            tasks: 16,
            prefix: "bandog-bench:1".to_owned(),
            json: false,
        };
        let text = warning(&Company::Elsewhere, "redis://db1", &plan, 60_000);
        for words in ["redis://db1 is on another machine", "contended, hand-off there for 3.0s each, 6.0s in all"] {
            assert!(text.contains(words), "{text}");
        }
        assert!(text.contains("up to about 60,000, on locks whose names begin with bandog-bench:1."), "{text}");
    }
}
