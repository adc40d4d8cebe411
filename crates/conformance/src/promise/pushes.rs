//! What holders hear: that somebody waits, and from which life of the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

use bandog_core::name::LockName;
use bandog_core::op::Reply;
use bandog_core::op::{Claim, News, Op};
use bandog_core::store::StoreError;
use bandog_core::store::{Ask, Push, Receiver, Store};

use crate::bench::{Bench, Need, Proof, Skip};

fn is_notice(news: &News) -> bool {
    matches!(news, News::Waiting { .. })
}

fn is_fair_notice(news: &News) -> bool {
    matches!(news, News::Waiting { fair: true })
}

/// The first waiter makes the store tell the holder, with the lock's name and the store's life.
pub async fn a_holder_hears_that_somebody_waits(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("waits").await;
    ann.holds(ann.ask()).await;
    let reply = bob.send(Op::Acquire(bob.ask())).await;
    let push = ann.hears("the first waiter", is_notice).await;
    assert_eq!((push.name, push.run), (ann.name.clone(), reply.run));
    assert_eq!(push.news, News::Waiting { fair: false });
    Ok(())
}

/// The first fair waiter is told, too; others are not worth a message.
pub async fn a_holder_hears_of_the_first_fair_waiter(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat, dan] = bench.cast("fair").await;
    let hold = ann.holds(ann.ask()).await;
    bob.waits(bob.ask()).await;
    ann.hears("the first waiter", is_notice).await;
    cat.waits(cat.ask()).await;
    ann.still_holds(hold.id()).await;
    assert!(!ann.has_heard(is_notice), "a second waiter is no news");
    dan.waits(Claim { fair: true, ..dan.ask() }).await;
    ann.hears("the first fair waiter", is_fair_notice).await;
    Ok(())
}

/// Every reader's client hears it, each once.
pub async fn every_holder_hears_it(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue, Need::Shared])?;
    let [ann, bob, cat] = bench.cast("every").await;
    ann.holds(ann.ask_shared()).await;
    let twice = ann.holds(ann.ask_shared()).await;
    bob.holds(bob.ask_shared()).await;
    cat.waits(cat.ask()).await;
    bob.hears("the writer", is_notice).await;
    ann.hears("the writer", is_notice).await;
    ann.still_holds(twice.id()).await;
    assert!(!ann.has_heard(is_notice), "one client, one message");
    Ok(())
}

/// A heartbeat repeats the notice: the first may have been lost.
pub async fn a_heartbeat_repeats_the_notice(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob] = bench.cast("repeats").await;
    ann.holds(ann.ask()).await;
    let place = bob.waits(bob.ask()).await;
    ann.hears("the first waiter", is_notice).await;
    bob.stands(place.id()).await;
    ann.hears("the waiter's heartbeat", is_notice).await;
    Ok(())
}

/// A new holder with others behind it learns of them with its grant, when it confirms, or by the next heartbeat.
pub async fn a_new_holder_learns_of_the_line(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue])?;
    let [ann, bob, cat] = bench.cast("line").await;
    let hold = ann.holds(ann.ask()).await;
    let (second, third) = (bob.waits(bob.ask()).await, cat.waits(cat.ask()).await);
    ann.releases(hold.id()).await;
    assert_eq!(bob.picks_up(&second).await.grant.line.waiters, 1);
    cat.stands(third.id()).await;
    bob.hears("the waiter's heartbeat", is_notice).await;
    Ok(())
}

/// An inbox that asks the store back while it is told something.
struct Curious {
    store: Arc<dyn Store>,
    answered: AtomicBool,
}

impl Receiver for Curious {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        let name: LockName = push.name;
        let mut call = self.store.apply(name, Op::Inspect);
        let answer = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.answered.store(answer.is_ready(), Ordering::Relaxed);
    }

    fn connected(&self, _: bool) {}
}

/// An inbox may call back: no lock of the store is held while it delivers. A store that breaks this hangs here.
pub async fn an_inbox_may_call_back(bench: &Bench) -> Proof {
    bench.needs(&[Need::Queue, Need::Inspect])?;
    if !bench.store.capabilities().in_process {
        return Err(Skip("the store does not deliver within a call"));
    }
    let [ann] = bench.cast("back").await;
    let bob = bench.deaf_actor(&ann.name).await;
    let curious = Arc::new(Curious { store: bench.store.connection(), answered: AtomicBool::new(false) });
    let inbox: Arc<dyn Receiver> = curious.clone();
    let receiver: Weak<dyn Receiver> = Arc::downgrade(&inbox);
    bench.store.listen(bob.client.inbox(), receiver).await.expect("a listener");
    let hold = ann.holds(ann.ask()).await;
    bob.waits(bob.ask()).await;
    ann.releases(hold.id()).await;
    assert!(curious.answered.load(Ordering::Relaxed), "the inbox was not told, or not answered");
    Ok(())
}
