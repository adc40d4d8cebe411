//! How fast the server answers, and which commands of others hold it up.

use std::time::Duration;

use bandog_core::checkup::{Check, Pace, Remark, brief};
use bandog_core::time::Moment;

use super::patient::{Patient, command};
use super::words;
use crate::clock;
use crate::value::Value;

pub(super) const LATENCY: Check = Check::new(
    "latency",
    "every acquire and release is a round trip, and a renewal that is not answered in time counts as failed",
);
pub(super) const SLOW_COMMANDS: Check = Check::new(
    "slow-commands",
    "a server does one thing at a time: a slow command of somebody else holds up every renewal",
);

const PINGS: usize = 200;
const WITHIN: Duration = Duration::from_secs(1);
/// Slower than this is kept away from a server with locks on it, see docs/deployment.md.
const SLOW: u64 = 100_000;
const A_DAY: i64 = 86_400;

pub(super) async fn latency(patient: &Patient<'_>) -> Remark {
    let begin = clock::now();
    let mut times: Vec<Duration> = Vec::with_capacity(PINGS);
    while times.len() < PINGS && clock::now().since(begin) < WITHIN {
        let sent = clock::now();
        match patient.say(&["PING"]).await {
            Value::Error(text) if text.starts_with("NOPERM") => {
                return LATENCY.unknown("PING is refused").change(patient.allow("+ping"));
            }
            Value::Error(text) if text.starts_with(words::LOST) => {
                let waited = brief(clock::now().since(sent));
                let saw = format!("{}, after {waited}", words::refusal("a ping", &text));
                return LATENCY
                    .wrong(saw)
                    .change("look at the network, and at what holds the server up (slow-commands)");
            }
            // A refusal is no answer to a ping: it comes as fast where nothing is served.
            Value::Error(text) => {
                return LATENCY.unknown(words::refusal("PING", &text)).change(words::remedy(&text));
            }
            _ => times.push(clock::now().since(sent)),
        }
    }
    judge(times, patient.pace)
}

fn judge(mut times: Vec<Duration>, pace: &Pace) -> Remark {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied();
    let (Some(half), Some(most), Some(longest)) = (at(50), at(99), at(100)) else {
        return LATENCY.unknown("no ping was sent").change("examine it again");
    };
    let saw = format!(
        "round trip of {} pings: p50 {}, p99 {}, longest {}",
        times.len(),
        brief(half),
        brief(most),
        brief(longest)
    );
    // A quarter of each: beyond it grants from the queue need one more question, and renewals get close to their limit.
    let limit = pace.response_timeout.min(pace.claim_window) / 4;
    let seconds = most.max(longest / 2).as_millis() * 8 / 1_000 + 1;
    let change = format!(
        "?response_timeout={seconds}s&claim_window={seconds}s in the URL, with a lease to match; or move closer"
    );
    if most >= limit {
        return LATENCY.wrong(format!("{saw}; the limit is {}", brief(limit))).change(change);
    }
    if longest >= limit || most >= limit / 5 {
        return LATENCY.risky(format!("{saw}; the limit is {}", brief(limit))).change(change);
    }
    LATENCY.fine(saw)
}

pub(super) async fn slow_commands(patient: &Patient<'_>) -> Remark {
    let answers = patient.ask(vec![command(&["SLOWLOG", "GET", "128"]), command(&["TIME"])]).await;
    match &answers[..] {
        [Value::Array(entries), now] => slowest(entries, seconds(now)),
        [Value::Error(text), ..] => {
            let remark = SLOW_COMMANDS.unknown(words::refusal("SLOWLOG", text));
            let is_forbidden = text.starts_with("NOPERM");
            remark.change(if is_forbidden { patient.allow("+slowlog|get") } else { words::remedy(text).to_owned() })
        }
        _ => SLOW_COMMANDS.unknown("SLOWLOG tells nothing").change("SLOWLOG GET 10, where the server runs"),
    }
}

/// The server's clock, in seconds.
pub(super) fn seconds(answer: &Value) -> Option<i64> {
    let Value::Array(parts) = answer else { return None };
    let Some(Value::Bytes(digits)) = parts.first() else { return None };
    std::str::from_utf8(digits).ok()?.parse().ok()
}

struct Slow {
    micros: u64,
    command: String,
}

fn slowest(entries: &[Value], now: Option<i64>) -> Remark {
    let recent: Vec<Slow> = entries.iter().filter_map(|entry| read(entry, now)).collect();
    let Some(slowest) = recent.iter().max_by_key(|slow| slow.micros) else {
        return SLOW_COMMANDS.fine("none in the last day that the server took note of");
    };
    let (count, longest) = (recent.len(), brief(Duration::from_micros(slowest.micros)));
    let saw = format!("{count} in the last day; the slowest is {}, with {longest}", slowest.command);
    if slowest.micros < SLOW {
        return SLOW_COMMANDS.fine(saw);
    }
    SLOW_COMMANDS
        .risky(saw)
        .change("SLOWLOG GET 10 shows them: SCAN and UNLINK instead of KEYS and DEL, or a server of its own for locks")
}

/// What an entry of the last day says: who waits for it, and for how long, but no argument, which may be somebody's secret.
fn read(entry: &Value, now: Option<i64>) -> Option<Slow> {
    let Value::Array(parts) = entry else { return None };
    let [_, Value::Int(at), Value::Int(micros), Value::Array(words), ..] = &parts[..] else { return None };
    let Some(Value::Bytes(command)) = words.first() else { return None };
    let recent = now.is_none_or(|now| now.saturating_sub(*at) <= A_DAY);
    recent.then(|| Slow { micros: micros.unsigned_abs(), command: words::text(command).to_uppercase() })
}

/// How long something took, for those who measure here.
pub(super) fn since(sent: Moment) -> Duration {
    clock::now().since(sent)
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn round_trips_are_judged_by_a_quarter_of_the_shorter_limit() {
        let of = |many: u64, few: u64| judge([vec![ms(many); 198], vec![ms(few); 2]].concat(), &Pace::default());
        assert_eq!(of(1, 2).fitness, Fitness::Fine);
        assert_eq!(of(1, 150).fitness, Fitness::Risky, "p99");
        assert_eq!(of(1, 600).fitness, Fitness::Wrong, "p99");
        let one = judge([vec![ms(1); 199], vec![ms(600)]].concat(), &Pace::default());
        assert_eq!(one.fitness, Fitness::Risky, "the longest: {one:?}");
        let hurried = Pace { response_timeout: ms(100), ..Pace::default() };
        assert_eq!(judge(vec![ms(30); 200], &hurried).fitness, Fitness::Wrong);
        assert_eq!(judge(Vec::new(), &hurried).fitness, Fitness::Unknown);
        assert!(of(1, 600).change.unwrap().contains("response_timeout=5s"));
    }

    #[test]
    fn slow_commands_count_for_a_day_and_show_no_argument() {
        let entry = |at: i64, micros: i64| {
            let words = ["set", "secret"].map(|word| Value::Bytes(word.into())).to_vec();
            Value::Array(vec![Value::Int(1), Value::Int(at), Value::Int(micros), Value::Array(words), Value::Nil])
        };
        let now = Some(1_000_000);
        assert_eq!(slowest(&[], now).fitness, Fitness::Fine);
        assert_eq!(slowest(&[entry(999_000, 20_000)], now).fitness, Fitness::Fine);
        assert_eq!(slowest(&[entry(900_000, 200_000)], now).fitness, Fitness::Fine, "an old one");
        let told = slowest(&[entry(999_000, 20_000), entry(999_000, 200_000)], now);
        assert_eq!(told.fitness, Fitness::Risky);
        assert!(told.saw.contains("2 in the last day") && told.saw.contains("SET, with 200 ms"), "{told:?}");
        assert!(!format!("{told:?}").contains("secret"));
    }
}
