//! The inbox of a client is there before its claims are: a grant that is pushed finds somebody who listens.

mod common;

use std::sync::Arc;

use bandog::op::Op;
use common::{World, ms, ready, waiting};
use tokio::sync::Notify;

#[tokio::test]
async fn a_claim_that_may_queue_is_sent_when_the_inbox_listens() {
    let world = World::far();
    let far = world.far.clone().unwrap();
    let holder = world.locks();
    let held = holder.mutex("job").acquire().await.unwrap();
    let subscribed = Arc::new(Notify::new());
    *far.subscribes.lock().unwrap() = Some(Arc::clone(&subscribed));
    let waiter = world.locks();
    far.log.lock().unwrap().clear();
    let mut waits = waiting(waiter.mutex("job").acquire());
    // Less than a client is patient with an inbox that does not come.
    world.pass(ms(20)).await;
    assert!(far.sent().is_empty(), "{:?}", far.sent());
    subscribed.notify_one();
    world.settle().await;
    assert!(matches!(far.sent()[..], [Op::Acquire(_)]), "{:?}", far.sent());
    assert_eq!(world.waiters("job"), 1);
    held.release().await.unwrap();
    world.settle().await;
    drop(ready(&mut waits).unwrap());
}
