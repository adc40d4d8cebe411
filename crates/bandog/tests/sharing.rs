//! Locks that several hold: readers and writers, upgrades, permits.

mod common;

use bandog::{ErrorKind, Fault, OpKind};
use common::{World, ms, poll, ready, secs, waiting};

#[tokio::test]
async fn a_writer_is_not_starved_by_readers() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let early = [a.rwlock("cfg").read().acquire().await.unwrap(), b.rwlock("cfg").read().acquire().await.unwrap()];
        let mut writer = waiting(b.rwlock("cfg").write().acquire());
        world.settle().await;
        let mut late = waiting(a.rwlock("cfg").read().acquire());
        world.settle().await;
        assert!(poll(&mut late).is_pending(), "a new reader does not pass the writer");
        assert!(a.rwlock("cfg").read().try_acquire().await.unwrap().is_none());
        drop(early);
        world.settle().await;
        let written = ready(&mut writer).unwrap();
        world.settle().await;
        assert!(poll(&mut late).is_pending());
        let token = written.token();
        written.release().await.unwrap();
        world.settle().await;
        assert!(ready(&mut late).unwrap().token() > token);
    }
}

#[tokio::test]
async fn upgrade_and_downgrade_change_the_hold_in_place() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let reader = a.rwlock("cfg").read().acquire().await.unwrap();
        let other = b.rwlock("cfg").read().acquire().await.unwrap();
        let mut queued = waiting(b.rwlock("cfg").write().acquire());
        world.settle().await;
        let before = reader.token();
        let mut upgrade = Box::pin(reader.upgrade());
        assert!(poll(&mut upgrade).is_pending(), "another reads");
        world.pass(secs(100)).await;
        assert!(poll(&mut upgrade).is_pending());
        other.release().await.unwrap();
        world.settle().await;
        let writer = ready(&mut upgrade).unwrap();
        assert!(writer.token() > before, "a write has a token of its own");
        assert!(poll(&mut queued).is_pending(), "it passes the queued writer");
        world.pass(secs(100)).await;
        assert!(writer.is_held());

        let token = writer.token();
        let mut more = waiting(b.rwlock("cfg").read().acquire());
        let reader = writer.downgrade().await.unwrap();
        assert_eq!(reader.token(), token);
        world.settle().await;
        assert!(poll(&mut more).is_pending(), "the writer in front of it goes first");
        drop(queued);
        world.settle().await;
        assert!(ready(&mut more).unwrap().is_held() && reader.is_held(), "readers share again");
        world.pass(secs(100)).await;
        assert!(reader.is_held());
        reader.release().await.unwrap();
        world.settle().await;
        assert!(world.is_free("cfg"));
    }
}

#[tokio::test]
async fn of_two_upgraders_one_is_refused_and_reads_on() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let one = a.rwlock("cfg").read().acquire().await.unwrap();
        let two = b.rwlock("cfg").read().acquire().await.unwrap();
        let mut first = Box::pin(one.upgrade());
        assert!(poll(&mut first).is_pending());
        world.settle().await;
        let refused = two.upgrade().await.unwrap_err();
        assert_eq!(refused.reason.kind(), ErrorKind::UpgradePending);
        assert!(refused.guard.is_held(), "the read guard is as it was");
        refused.guard.release().await.unwrap();
        world.settle().await;
        assert!(ready(&mut first).unwrap().is_held());
    }
}

#[tokio::test]
async fn a_withdrawn_upgrade_reads_on() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let one = a.rwlock("cfg").read().acquire().await.unwrap();
        let two = b.rwlock("cfg").read().acquire().await.unwrap();
        let mut upgrade = Box::pin(one.upgrade_within(secs(3)));
        assert!(poll(&mut upgrade).is_pending());
        world.pass(ms(2_999)).await;
        assert!(poll(&mut upgrade).is_pending());
        world.pass(ms(1)).await;
        let withdrawn = ready(&mut upgrade).unwrap_err();
        assert_eq!(withdrawn.reason.kind(), ErrorKind::Timeout, "{withdrawn}");
        let one = withdrawn.guard;
        assert!(one.is_held() && two.is_held());
        world.pass(secs(100)).await;
        assert!(one.is_held() && two.is_held());
        assert!(b.rwlock("cfg").read().try_acquire().await.unwrap().is_some(), "nothing is pending any more");
        drop((one, two));
        world.settle().await;
        assert!(world.is_free("cfg"));
    }
}

#[tokio::test]
async fn an_upgrade_without_an_answer_leaves_no_false_belief() {
    let late = |before, after| Fault::Delay { before: ms(before), after: ms(after) };
    for world in World::both() {
        for fault in [Fault::LoseReply, Fault::LoseRequest, late(1_900, 1_000), late(5_000, 0)] {
            for others in [false, true] {
                let (a, b) = (world.locks(), world.locks());
                let reader = a.rwlock("cfg").read().acquire().await.unwrap();
                let other = if others { Some(b.rwlock("cfg").read().acquire().await.unwrap()) } else { None };
                world.store.inject(OpKind::Upgrade, fault, 1);
                let mut upgrade = Box::pin(reader.upgrade());
                assert!(poll(&mut upgrade).is_pending());
                world.pass(secs(3)).await;
                let failed = ready(&mut upgrade).unwrap_err();
                assert_eq!(failed.reason.kind(), ErrorKind::Unavailable, "{failed}");
                let reader = failed.guard;
                for _ in 0..40 {
                    let holders = 1 + usize::from(others);
                    assert!(!reader.is_held() || world.holders("cfg") == holders, "{fault:?}, {others}: {reader:?}");
                    world.pass(ms(500)).await;
                }
                // A request that may yet arrive would take the read hold with it; one that was executed is taken back.
                let may_arrive = matches!(fault, Fault::LoseRequest) || fault == late(5_000, 0);
                assert_eq!(reader.is_held(), !may_arrive, "{fault:?}, {others}: {reader:?}");
                drop((reader, other));
                world.pass(secs(3)).await;
                assert!(world.is_free("cfg"), "{fault:?}, {others}: {:?}", world.view("cfg"));
            }
        }
    }
}

#[tokio::test]
async fn a_dropped_upgrade_releases_everything() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let one = a.rwlock("cfg").read().acquire().await.unwrap();
        let two = b.rwlock("cfg").read().acquire().await.unwrap();
        let mut upgrade = Box::pin(one.upgrade());
        assert!(poll(&mut upgrade).is_pending());
        world.settle().await;
        drop(upgrade);
        world.settle().await;
        assert_eq!((world.holders("cfg"), world.waiters("cfg")), (1, 0));
        assert!(b.rwlock("cfg").read().try_acquire().await.unwrap().is_some(), "no upgrade is pending");
        drop(two);
    }
}

#[tokio::test]
async fn a_large_request_for_permits_is_not_passed() {
    for world in World::both() {
        let (a, b) = (world.locks(), world.locks());
        let three = a.semaphore("gpu", 4).permits(3).acquire().await.unwrap();
        let mut large = waiting(b.semaphore("gpu", 4).permits(4).acquire());
        world.settle().await;
        let mut small = waiting(a.semaphore("gpu", 4).acquire());
        world.settle().await;
        assert!(poll(&mut small).is_pending(), "one is free, but it is not its turn");
        assert!(b.semaphore("gpu", 4).try_acquire().await.unwrap().is_none());
        three.release().await.unwrap();
        world.settle().await;
        let large = ready(&mut large).unwrap();
        world.settle().await;
        assert!(poll(&mut small).is_pending());
        large.release().await.unwrap();
        world.settle().await;
        let _small = ready(&mut small).unwrap();
        let error = a.semaphore("gpu", 5).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongKind, "one capacity per name");
    }
}
