//! The server's clock, watched for a second beside ours: does it step, and does it run at the same rate?

use std::time::Duration;

use bandog_core::checkup::{Check, Remark, brief};
use bandog_core::lease::Drift;
use rustix::time::{ClockId, clock_gettime};

use super::patient::Patient;
use super::words;
use crate::clock;
use crate::value::Value;

pub(super) const CLOCK: Check = Check::new(
    "clock",
    "leases and tokens are counted on the server's clock: after a step forward leases end early, and another may be granted \
     while a holder still believes",
);

const LOOKS: u32 = 11;
const BETWEEN: Duration = Duration::from_millis(100);

/// One look at the server's clock, in nanoseconds. It was read between `sent` and `received`, which are ours.
#[derive(Debug, Clone, Copy)]
struct Look {
    shown: i128,
    sent: i128,
    received: i128,
}

pub(super) async fn watch(patient: &Patient<'_>) -> Remark {
    let (mut looks, mut refused) = (Vec::new(), None);
    for round in 0..LOOKS {
        if round > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        let sent = nanos();
        match patient.say(&["TIME"]).await {
            Value::Error(text) if text.starts_with("NOPERM") => {
                return CLOCK.unknown("TIME is refused").change(patient.allow("+time"));
            }
            Value::Error(text) => refused = Some(text),
            answer => looks.extend(shown(&answer).map(|shown| Look { shown, sent, received: nanos() })),
        }
    }
    match refused {
        Some(text) if looks.len() < 2 => CLOCK.unknown(words::refusal("TIME", &text)).change(words::remedy(&text)),
        _ => judge(&looks, patient.pace.drift, wall()),
    }
}

fn judge(looks: &[Look], drift: Drift, wall: i128) -> Remark {
    let (Some(first), Some(last)) = (looks.first(), looks.last().filter(|_| looks.len() > 1)) else {
        return CLOCK.unknown("TIME gave too few answers").change("examine it again");
    };
    let neighbours = looks.windows(2).map(|pair| (pair[0], pair[1]));
    let moved = neighbours.chain([(*first, *last)]).find_map(|(one, other)| excess(one, other, drift));
    if let Some((by, within)) = moved {
        let (by, way) = (length(by), if by > 0 { "forward" } else { "back" });
        return CLOCK.wrong(format!("it went {} {way} against ours within {}", brief(by), brief(within))).change(
            "slew the clock instead of stepping it: makestep 1 3 and maxslewrate 5000 in chrony.conf, or ntpd -x",
        );
    }
    let ahead = last.shown - wall;
    let (by, way) = (brief(length(ahead)), if ahead > 0 { "ahead of" } else { "behind" });
    let watched = brief(length(last.received - first.sent));
    CLOCK.fine(format!("it ran as ours does for {watched}; it is {by} {way} this machine's, which does not matter"))
}

/// How far the server's clock certainly moved against ours between two looks, and in which time, if that is more than is allowed for.
fn excess(one: Look, other: Look, drift: Drift) -> Option<(i128, Duration)> {
    let least = (other.shown - other.received) - (one.shown - one.sent);
    let most = (other.shown - other.sent) - (one.shown - one.received);
    let certain = if least > 0 { least } else { most.min(0) };
    let within = length(other.received - one.sent);
    let allowed = within * drift.per_mille / 1_000 + drift.constant;
    (length(certain) > allowed).then_some((certain, within))
}

fn length(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.unsigned_abs()).unwrap_or(u64::MAX))
}

fn shown(answer: &Value) -> Option<i128> {
    let Value::Array(parts) = answer else { return None };
    let number = |at: usize| match parts.get(at)? {
        // As many digits as a clock has, so that what is made of them fits.
        Value::Bytes(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok().map(i128::from),
        _ => None,
    };
    Some(number(0)? * 1_000_000_000 + number(1)? * 1_000)
}

fn nanos() -> i128 {
    i128::from(clock::now().nanos())
}

/// This machine's wall clock. It is only told, and nothing rests on it.
fn wall() -> i128 {
    let time = clock_gettime(ClockId::Realtime);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    const MS: i128 = 1_000_000;

    /// Looks at a clock that shows what `shows` makes of our time; each takes `trip` milliseconds.
    fn watched(trip: i128, shows: impl Fn(i128) -> i128) -> Fitness {
        let look = |at: i128| Look { shown: shows(at + trip / 2) * MS, sent: at * MS, received: (at + trip) * MS };
        let looks: Vec<Look> = (0..11).map(|at| look(at * 100)).collect();
        judge(&looks, Drift::default(), 0).fitness
    }

    #[test]
    fn steps_and_wrong_rates_are_found() {
        assert_eq!(watched(0, |at| at + 5_000), Fitness::Fine);
        assert_eq!(watched(0, |at| at + if at > 500 { 60_000 } else { 0 }), Fitness::Wrong);
        assert_eq!(watched(0, |at| at - if at > 500 { 60_000 } else { 0 }), Fitness::Wrong);
        assert_eq!(watched(0, |at| at + if at > 500 { 10 } else { 0 }), Fitness::Wrong);
        assert_eq!(watched(0, |at| at + at / 200), Fitness::Fine, "half a per cent");
        assert_eq!(watched(0, |at| at + at / 20), Fitness::Wrong, "five per cent");
        assert_eq!(watched(0, |at| at - at / 20), Fitness::Wrong);
    }

    #[test]
    fn a_slow_network_is_no_wrong_clock() {
        assert_eq!(watched(80, |at| at + 5_000), Fitness::Fine);
        assert_eq!(watched(80, |at| at + if at > 500 { 30 } else { 0 }), Fitness::Fine, "it cannot be told");
        assert_eq!(watched(80, |at| at + if at > 500 { 1_000 } else { 0 }), Fitness::Wrong);
        assert_eq!(judge(&[], Drift::default(), 0).fitness, Fitness::Unknown);
    }
}
