//! News that does not arrive, and an inbox that is cut off: nobody waits longer than the heartbeat takes.

use crate::on_stage;
use crate::support::{ms, soon, until};
use bandog_rig::Fault;

#[test]
fn schedule_19_every_message_is_lost() {
    on_stage(async |stage| {
        stage.proxy.deafen(true);
        for _ in 0..3 {
            let held = stage.bob.mutex("job").acquire().await.unwrap();
            let ann = stage.ann.clone();
            let waits = tokio::spawn(async move { ann.mutex("job").acquire().await.unwrap() });
            stage.sees("job", (1, 1)).await;
            held.release().await.unwrap();
            let guard = tokio::time::timeout(ms(2_000), waits).await.expect("a heartbeat finds it").unwrap();
            guard.release().await.unwrap();
        }
    });
}

#[test]
fn schedule_19_the_inbox_is_cut_just_before_the_message() {
    on_stage(async |stage| {
        for _ in 0..5 {
            let held = stage.bob.mutex("job").acquire().await.unwrap();
            let ann = stage.ann.clone();
            let waits = tokio::spawn(async move { ann.mutex("job").acquire().await.unwrap() });
            stage.sees("job", (1, 1)).await;
            assert!(stage.server.run::<u32>("CLIENT KILL TYPE pubsub") >= 1);
            held.release().await.unwrap();
            let guard = tokio::time::timeout(ms(2_000), waits).await.expect("found after the resubscription").unwrap();
            guard.release().await.unwrap();
        }
    });
}

#[test]
fn schedule_19_the_inbox_subscribes_again() {
    on_stage(async |stage| {
        stage.listens().await;
        let before = stage.proxy.seen("subscribe");
        assert!(stage.server.run::<u32>("CLIENT KILL TYPE pubsub") >= 1);
        until("another subscription", || stage.proxy.seen("subscribe") > before).await;
        until("a listener at the server", || {
            stage.server.run::<String>("CLIENT LIST TYPE pubsub").lines().count() >= 2
        })
        .await;
        // With heartbeats a grant would take half a claim window: this one is heard.
        let held = stage.bob.mutex("job").acquire().await.unwrap();
        let ann = stage.ann.clone();
        let waits = tokio::spawn(async move { ann.mutex("job").acquire().await.unwrap() });
        stage.sees("job", (1, 1)).await;
        held.release().await.unwrap();
        drop(tokio::time::timeout(ms(250), waits).await.expect("heard at once").unwrap());
    });
}

#[test]
fn schedule_19_a_subscription_is_lost_on_the_way() {
    on_stage(async |stage| {
        stage.listens().await;
        for fault in [Fault::LoseRequest, Fault::LoseReply] {
            let hit = stage.proxy.plan("subscribe", fault);
            assert!(stage.server.run::<u32>("CLIENT KILL TYPE pubsub") >= 1);
            hit.await.unwrap();
            stage.listens().await;
        }
        drop(soon("the lock", stage.ann.mutex("job").acquire()).await.unwrap());
    });
}
