//! News: does a message that a script publishes arrive, how soon, and how much of it may wait?

use std::time::Duration;

use bandog_core::checkup::{Check, Remark, brief};
use bandog_core::holder::InboxId;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::latency::since;
use super::patient::Patient;
use super::said::Said;
use super::words::{self, LOST, bytes};
use crate::clock;
use crate::resp::{Broken, Command, Deadline, Heard, Step, Unopened};
use crate::topology::{Session, random};
use crate::value::Value;

pub(super) const DELIVERY: Check = Check::new(
    "delivery",
    "grants reach waiters as messages; without them a waiter finds its grant with the next heartbeat, half a claim window later",
);
pub(super) const NEWS_BUFFER: Check = Check::new(
    "news-buffer",
    "a process that stands still while others hand locks to it is cut at this limit; it connects again and asks for what it missed",
);

/// Room for thousands of hand-offs.
const ENOUGH: u64 = 1 << 20;
const SLOW: Duration = Duration::from_millis(500);

pub(super) async fn delivery(patient: &Patient<'_>) -> Remark {
    let channel = patient.config.keys().channel(InboxId::from_bits(random()));
    let (session, mut heard) = match listen(patient, &channel).await {
        Ok(listening) => listening,
        Err(why) => return untried(&why),
    };
    let publish = Command::new("EVAL").arg("return redis.call('PUBLISH', ARGV[1], ARGV[2])").number(0);
    let publish = publish.arg(&channel).arg("checkup");
    let sent = clock::now();
    if let Value::Error(text) = patient.ask_one(publish).await {
        return untried(&text);
    }
    let arrived = tokio::time::timeout(patient.patience(), message(&mut heard)).await;
    drop(session);
    match arrived {
        Ok(Some(())) if since(sent) < SLOW => DELIVERY.fine(format!("a message arrived after {}", brief(since(sent)))),
        Ok(Some(())) => DELIVERY
            .risky(format!("a message arrived only after {}", brief(since(sent))))
            .change("see latency and slow-commands"),
        _ => DELIVERY
            .risky("a message that was published did not arrive")
            .change("look for a proxy on the way that does not carry pub/sub"),
    }
}

fn untried(why: &str) -> Remark {
    let told = words::plain(why.strip_prefix(LOST).unwrap_or(why).trim_start());
    DELIVERY.unknown(format!("it could not be tried: {told}")).change(words::remedy(why))
}

async fn listen(patient: &Patient<'_>, channel: &[u8]) -> Result<(Session, UnboundedReceiver<Heard>), String> {
    let (tell, heard) = unbounded_channel();
    let handler = Box::new(move |heard| tell.send(heard).is_ok());
    let refused = |unopened: Unopened| match unopened.why {
        Broken::Refused(text) => text,
        why => format!("{LOST} {}", Unopened { why, ..unopened }),
    };
    let deadline = Deadline::within(patient.patience());
    let session = Session::plain(&patient.endpoint, Some(handler), &deadline).await.map_err(refused)?;
    deadline.step(Step::Subscribe, session.subscribe([channel.to_vec()])).await.map_err(refused)?;
    Ok((session, heard))
}

async fn message(heard: &mut UnboundedReceiver<Heard>) -> Option<()> {
    while let Some(heard) = heard.recv().await {
        match heard {
            Heard::Message(_) => return Some(()),
            Heard::Gone => return None,
            Heard::Matched(_) => {}
        }
    }
    None
}

pub(super) fn buffer(said: &Said) -> Remark {
    let Some(limits) = said.setting("client-output-buffer-limit") else { return said.no_setting(NEWS_BUFFER) };
    let mut words = limits.split_whitespace().skip_while(|word| *word != "pubsub").skip(1);
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    let (Some(hard), Some(soft), Some(seconds)) = (number(), number(), number()) else {
        return NEWS_BUFFER
            .unknown(format!("client-output-buffer-limit is {limits:?}"))
            .change("see its pubsub limits: CONFIG GET client-output-buffer-limit");
    };
    // 0 is no limit.
    let is_small = |limit: u64| limit > 0 && limit < ENOUGH;
    let shown = |limit: u64| if limit == 0 { "no limit".to_owned() } else { bytes(limit) };
    let saw = format!("{} at once, {} for {seconds} s", shown(hard), shown(soft));
    if is_small(hard) || is_small(soft) {
        return NEWS_BUFFER.risky(saw).change("CONFIG SET client-output-buffer-limit \"pubsub 32mb 8mb 60\"");
    }
    NEWS_BUFFER.fine(saw)
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn the_buffer_is_judged_by_both_limits() {
        let of = |pubsub: &str| {
            let all = format!("normal 0 0 0 slave 268435456 67108864 60 pubsub {pubsub}");
            buffer(&Said::of(&[], &[("client-output-buffer-limit", &all)])).fitness
        };
        assert_eq!(of("33554432 8388608 60"), Fitness::Fine);
        assert_eq!(of("0 0 0"), Fitness::Fine);
        assert_eq!(of("65536 0 0"), Fitness::Risky);
        assert_eq!(of("33554432 1024 60"), Fitness::Risky);
        assert_eq!(of("what"), Fitness::Unknown);
        assert_eq!(buffer(&Said::default()).fitness, Fitness::Unknown);
    }
}
