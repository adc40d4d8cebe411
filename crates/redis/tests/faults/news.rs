//! News that does not arrive, and an inbox that is cut off: nobody waits longer than the heartbeat takes, and who was revoked is told why
//! by the next answer.

use bandog::Recovery;

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
            // A claim does not wait for long until news is heard again.
            stage.listens().await;
            assert!(stage.server.cut("bandog-news") >= 1);
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
        assert!(stage.server.cut("bandog-news") >= 1);
        until("another subscription", || stage.proxy.seen("subscribe") > before).await;
        until("a listener at the server", || stage.server.listeners().len() >= 2).await;
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
            assert!(stage.server.cut("bandog-news") >= 1);
            hit.await.unwrap();
            stage.listens().await;
        }
        drop(soon("the lock", stage.ann.mutex("job").acquire()).await.unwrap());
    });
}

#[test]
fn schedule_19_a_lost_revocation_is_told_by_the_next_answer() {
    on_stage(async |stage| {
        stage.listens().await;
        stage.proxy.deafen(true);
        let kept = stage.ann.mutex("kept").recovery(Recovery::Reacquire).acquire().await.unwrap();
        let permits = stage.ann.semaphore("permits", 3).permits(2).acquire().await.unwrap();
        let reader = stage.ann.rwlock("reader").read().acquire().await.unwrap();
        let released = stage.ann.mutex("released").acquire().await.unwrap();
        let stays = stage.ann.mutex("stays").lock_at_least(ms(60_000)).acquire().await.unwrap();
        let ticket = stage.ann.mutex("ticket").acquire().await.unwrap().detach().await.unwrap();
        for lock in ["released", "stays", "ticket", "reader", "permits", "kept"] {
            stage.bob.revoke(lock, "stuck since noon").now().await.unwrap().expect("a holder");
        }
        let errors = [
            released.release().await.unwrap_err().to_string(),
            stays.release().await.unwrap_err().to_string(),
            ticket.renew(&stage.ann).await.unwrap_err().to_string(),
            ticket.release(&stage.ann).await.unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(error.ends_with("revoked: stuck since noon"), "{error}");
        }
        let lost = async { [kept.lost().await, permits.lost().await, reader.lost().await] };
        for lost in soon("the losses", lost).await {
            assert_eq!(lost.to_string(), "revoked: stuck since noon");
        }
        until("news that was swallowed", || stage.proxy.swallowed() >= 6).await;
        drop((kept, permits, reader));
        for lock in ["released", "stays", "ticket", "reader", "permits", "kept"] {
            assert_eq!(stage.crowd(lock).await, (0, 0), "{lock} is not taken again");
        }
    });
}

#[test]
fn schedule_19_a_revocation_while_the_inbox_is_cut_is_told() {
    on_stage(async |stage| {
        for _ in 0..3 {
            stage.listens().await;
            let guard = stage.ann.mutex("job").acquire().await.unwrap();
            assert!(stage.server.cut("bandog-news") >= 1);
            stage.bob.revoke("job", "stuck since noon").now().await.unwrap().expect("a holder");
            assert_eq!(soon("the loss", guard.lost()).await.to_string(), "revoked: stuck since noon");
        }
    });
}
