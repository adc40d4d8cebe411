//! How a store is called: singly, in batches, through lanes; and what it says about itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bandog_core::holder::HolderId;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Op, Patience, Release, Renew, Renewal, Reply, Target, Verdict};
use bandog_core::store::{
    Ask, Call, Capabilities, Connection, Listing, Outcome, Push, Receiver, ReplyTo, Store, StoreError, StoreErrorKind,
};

use crate::bench::{Bench, BoxFuture, Need, Proof, Skip};
use crate::run::together;

/// A batch is answered like single calls, one answer each, in order.
pub async fn a_batch_equals_single_calls(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("batch").await;
    let other = bench.name("batch");
    let (first, second, elsewhere) = (ann.ask(), bob.ask_now(), bob.ask());
    let renew = |id: HolderId| Op::Renew(Renew::new(id, bench.long()));
    let calls = vec![
        (ann.name.clone(), Op::Acquire(first.clone())),
        (ann.name.clone(), Op::Acquire(second.clone())),
        (other.clone(), Op::Acquire(elsewhere.clone())),
        (ann.name.clone(), renew(first.id)),
        (other.clone(), renew(first.id)),
        (ann.name.clone(), Op::Release(Release { id: first.id, not_after: None, again: None })),
        (other, renew(elsewhere.id)),
    ];
    let replies = bench.store.batch(calls).await;
    let bodies: Vec<Body> = replies.into_iter().map(|reply| reply.expect("an answer in a batch").body).collect();
    assert!(
        matches!(
            &bodies[..],
            [
                Body::Verdict(Verdict::Granted(_)),
                Body::Verdict(Verdict::Busy(_)),
                Body::Verdict(Verdict::Granted(_)),
                Body::Renewal(Renewal::Renewed { .. }),
                Body::Renewal(Renewal::NotHolder),
                Body::Release(_),
                Body::Renewal(Renewal::Renewed { .. }),
            ]
        ),
        "{bodies:?}"
    );
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// Many renewals in one batch are answered like single ones: each by its own lock, also where one is not as the others.
pub async fn many_renewals_equal_single_ones(bench: &Bench) -> Proof {
    let [mut ann, mut bob] = bench.cast("renewals").await;
    let (lease, mut calls, mut expected) = (bench.long(), Vec::new(), Vec::new());
    for number in 0..300 {
        ann.name = bench.name("renewals");
        bob.name = ann.name.clone();
        let hold = ann.holds(ann.ask()).await;
        let mut id = hold.id();
        let told = match number % 100 {
            7 => {
                bob.revokes(Target::Stamp(hold.stamp()), "repairs", false).await;
                "revoked: repairs".to_owned()
            }
            8 => {
                id = bob.client.fresh();
                "not the holder".to_owned()
            }
            9 => {
                ann.releases(hold.id()).await;
                "not the holder".to_owned()
            }
            10 if bench.store.capabilities().queue => {
                bob.waits(bob.ask()).await;
                format!("{:?}, 1 waits", hold.stamp())
            }
            _ => format!("{:?}, 0 wait", hold.stamp()),
        };
        calls.push((ann.name.clone(), Op::Renew(Renew::new(id, lease))));
        expected.push(told);
    }
    let told = |body: Body| match body {
        Body::Renewal(Renewal::Renewed { stamp, line, .. }) if line.waiters == 1 => format!("{stamp:?}, 1 waits"),
        Body::Renewal(Renewal::Renewed { stamp, line, .. }) => format!("{stamp:?}, {} wait", line.waiters),
        Body::Renewal(Renewal::Revoked { reason, .. }) => format!("revoked: {reason}"),
        Body::Renewal(Renewal::NotHolder) => "not the holder".to_owned(),
        other => format!("{other:?}"),
    };
    let replies = bench.store.batch(calls).await;
    let found: Vec<String> = replies.into_iter().map(|reply| told(reply.expect("an answer").body)).collect();
    assert_eq!(found, expected);
    Ok(())
}

/// A batch of nothing is answered with nothing.
pub async fn an_empty_batch_is_answered(bench: &Bench) -> Proof {
    bench.store.submit(Vec::new());
    assert!(bench.store.batch(Vec::new()).await.is_empty());
    Ok(())
}

/// Two lanes lead to the same records.
pub async fn two_lanes_see_one_record(bench: &Bench) -> Proof {
    let [mut ann, mut bob] = bench.cast("lanes").await;
    ann.store = bench.store.connection();
    bob.store = ann.store.connection();
    let hold = ann.holds(ann.ask()).await;
    bob.finds_busy(bob.ask_now()).await;
    ann.store = bench.store.connection();
    assert!(ann.still_holds(hold.id()).await);
    ann.releases(hold.id()).await;
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// Pushes reach an inbox whichever lane caused them.
pub async fn pushes_cross_lanes(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [mut ann, mut bob] = bench.cast("cross").await;
    (ann.store, bob.store) = (bench.store.connection(), bench.store.connection());
    let hold = ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    ann.releases(hold.id()).await;
    bob.picks_up(&place).await;
    Ok(())
}

/// Calls on one handle take effect in the order in which they were submitted: fair claims in any case.
pub async fn a_lane_keeps_the_order(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [mut ann] = bench.cast("order").await;
    ann.store = bench.store.connection();
    let ann = &ann;
    let claim =
        || -> BoxFuture<'_, Verdict> { Box::pin(async move { ann.claim(&Claim { fair: true, ..ann.ask() }).await.0 }) };
    let verdicts = together((0..bench.crowd().min(12)).map(|_| claim()).collect()).await;
    let place = |verdict: &Verdict| match verdict {
        Verdict::Granted(_) => Some(0),
        Verdict::Queued(queued) => Some(queued.ahead + 1),
        _ => None,
    };
    assert!(verdicts.iter().map(place).eq((0..).map(Some).take(verdicts.len())), "{verdicts:?}");
    Ok(())
}

/// A call takes effect whether or not anybody waits for its answer, and before the next call of the same handle.
pub async fn a_call_outlives_whoever_made_it(bench: &Bench) -> Proof {
    let [ann] = bench.cast("outlives").await;
    let claim = ann.ask();
    drop(ann.store.apply(ann.name.clone(), Op::Acquire(claim.clone())));
    assert!(ann.still_holds(claim.id).await);
    Ok(())
}

/// Counts the answers to each call. While it is told the first, it makes another call.
struct Counter {
    store: Arc<dyn Store>,
    name: LockName,
    answers: Mutex<BTreeMap<u64, u32>>,
    itself: Weak<Self>,
}

impl Receiver for Counter {
    fn answered(&self, name: &LockName, id: u64, answer: Result<Reply, StoreError>) {
        let as_asked = *name == self.name && answer.is_ok();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(id).or_default() += if as_asked { 1 } else { WRONG };
        drop(answers);
        if id == 0 {
            self.submit(&[LATER]);
        }
    }

    fn deliver(&self, _: Push) {}

    fn connected(&self, _: bool) {}
}

/// The id of the call that is made from within an answer.
const LATER: u64 = 1_000;

/// What an answer counts that is wrong.
const WRONG: u32 = 1_000;

impl Counter {
    fn submit(&self, ids: &[u64]) {
        let Some(receiver) = self.itself.upgrade() else { return };
        let call = |id: &u64| {
            let reply = ReplyTo::new(Arc::clone(&receiver) as Arc<dyn Receiver>, self.name.clone(), *id);
            Call { name: self.name.clone(), op: Op::Tend, unattended: false, reply }
        };
        self.store.submit(ids.iter().map(call).collect());
    }
}

/// Each call has exactly one answer, and whoever is told it may make the next call right there.
pub async fn each_call_is_answered_once(bench: &Bench) -> Proof {
    let [ann] = bench.cast("once").await;
    let (store, name) = (bench.store.connection(), ann.name.clone());
    let counter =
        Arc::new_cyclic(|itself| Counter { store, name, answers: Mutex::default(), itself: Weak::clone(itself) });
    let ids: Vec<u64> = (0..u64::from(bench.crowd().min(100))).collect();
    counter.submit(&ids[..1]);
    counter.submit(&ids[1..]);
    let answers = || counter.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let turn = async || counter.store.apply(ann.name.clone(), Op::Tend).await.unwrap_or_else(|error| panic!("{error}"));
    while answers().len() <= ids.len() {
        turn().await;
    }
    // Behind all of them: what came twice is there.
    turn().await;
    assert!(answers().values().all(|count| *count == 1), "{:?}", answers());
    Ok(())
}

/// The store's clock, as the handle knows it, does not lag behind the last answer.
pub async fn the_clock_follows_the_answers(bench: &Bench) -> Proof {
    let [ann] = bench.cast("clock").await;
    bench.time.pass(bench.terms.grace).await;
    let hold = ann.holds(ann.ask()).await;
    assert!(ann.store.time() >= hold.at, "{:?} after an answer at {:?}", ann.store.time(), hold.at);
    Ok(())
}

/// A store says what it is, and every lane says the same.
pub async fn capabilities_are_the_same_on_every_lane(bench: &Bench) -> Proof {
    let lane = bench.store.connection();
    assert_eq!(bench.store.capabilities(), lane.capabilities());
    assert!(!bench.store.to_string().is_empty());
    Ok(())
}

/// What a store says it cannot do, it refuses without doing it.
pub async fn what_is_denied_is_refused(bench: &Bench) -> Proof {
    let [ann, bob] = bench.cast("denied").await;
    let able = bench.store.capabilities();
    let queue = Claim { patience: Patience::Queue, ..ann.ask() };
    let denied = [
        (able.shared, Op::Acquire(ann.ask_shared())),
        (able.permits, Op::Acquire(ann.ask_permits(1, 2))),
        (able.queue, Op::Acquire(queue)),
        (able.inspect, Op::Inspect),
    ];
    for (_, op) in denied.into_iter().filter(|(able, _)| !able) {
        let error = ann.store.apply(ann.name.clone(), op.clone()).await.expect_err("a denied operation is refused");
        assert_eq!((error.kind, error.outcome), (StoreErrorKind::Unsupported, Outcome::NotExecuted), "{op:?}");
    }
    if !able.inspect {
        let error = ann.store.list(Listing::default()).await.expect_err("a denied listing is refused");
        assert_eq!(error.kind, StoreErrorKind::Unsupported);
    }
    bob.holds(bob.ask_now()).await;
    Ok(())
}

/// A store that says it needs no I/O answers while the call is submitted.
pub async fn in_process_answers_at_once(bench: &Bench) -> Proof {
    let Capabilities { in_process: true, .. } = bench.store.capabilities() else {
        return Err(Skip("the store does not answer while a call is submitted"));
    };
    let [ann] = bench.cast("in-process").await;
    let mut answer = ann.store.apply(ann.name.clone(), Op::Acquire(ann.ask()));
    let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(_))), "{polled:?}");
    Ok(())
}

/// Every handle answers when it is asked for nothing but an answer, on the connection that it has.
pub async fn probes_are_answered_on_every_way(bench: &Bench) -> Proof {
    let [_listens] = bench.cast("probe").await;
    for store in [bench.store.connection(), bench.store.connection()] {
        for connection in [Connection::Calls, Connection::News] {
            let probe =
                async || store.probe(connection).await.unwrap_or_else(|error| panic!("{connection:?}: {error}"));
            let first = probe().await;
            assert!(first.opened > 0, "{connection:?}: {first:?}");
            assert_eq!(probe().await, first, "{connection:?}: nothing broke in between");
        }
    }
    Ok(())
}
