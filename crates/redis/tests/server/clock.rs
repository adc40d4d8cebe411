//! A server that restarts with a clock that is behind (decision 0016): tokens grow all the same, and holds wait for the new run's word.

use std::sync::Arc;

use bandog::GuardState;
use bandog_rig::{Fault, Proxy, WallClock};

use crate::support::{Server, hasty, if_possible, is_missing, locks, ms, soon, until};

const HOUR: i64 = 3_600;

fn on_a_moved_clock(test: impl AsyncFnOnce(Arc<WallClock>, Server)) {
    if is_missing() {
        return;
    }
    let Some(clock) = WallClock::new().map(Arc::new) else { return };
    if_possible(async {
        let server = Server::by(&clock);
        test(clock, server).await;
    });
}

fn seconds(server: &Server) -> i64 {
    server.run::<(i64, i64)>("TIME").0
}

/// Starts the server again with a clock that is an hour behind.
fn fall_back(clock: &WallClock, server: &Server) {
    let before = seconds(server);
    clock.set(-HOUR);
    server.restart();
    assert!(seconds(server) < before - HOUR / 2, "the clock was not moved");
}

#[test]
fn tokens_grow_over_a_restart_with_a_clock_that_is_behind() {
    on_a_moved_clock(async |clock, server| {
        let ann = hasty().unavailable_after(ms(8_000)).connect(&server.url()).await.unwrap();
        let held = ann.mutex("held").acquire().await.unwrap();
        let free = ann.mutex("free").acquire().await.unwrap();
        let (held_token, free_token) = (held.token(), free.token());
        free.release().await.unwrap();
        fall_back(&clock, &server);
        assert_eq!(server.size(), 0, "nothing was to be remembered");
        soon("the loss", held.lost()).await;
        for (name, old) in [("held", held_token), ("free", free_token)] {
            let guard = soon("the lock", ann.mutex(name).acquire()).await.unwrap();
            assert!(guard.token() > old, "{name}: {} after {old}", guard.token());
            let last = guard.token();
            guard.release().await.unwrap();
            // Whoever comes later and never knew the old run finds the stamp in the record.
            let bob = locks(&server.url()).await;
            let next = soon("the lock", bob.mutex(name).acquire()).await.unwrap();
            assert!(next.token() > last, "{name}: {} after {last}", next.token());
        }
    });
}

#[test]
fn a_hold_is_uncertain_until_the_new_run_confirms_it() {
    on_a_moved_clock(async |clock, server| {
        let proxy = Proxy::of(&server).await;
        let options = hasty().unavailable_after(ms(8_000)).response_timeout(ms(5_000));
        let ann = options.connect(&proxy.url()).await.unwrap();
        let guard = ann.mutex("job").lease(ms(60_000)).acquire().await.unwrap();
        let _: String = server.run("SAVE");
        fall_back(&clock, &server);
        let asked = proxy.plan("renew", Fault::HoldRequest);
        // The answer to a claim for the same lock is the first that names the new run.
        let waits = tokio::spawn({
            let ann = ann.clone();
            async move { ann.mutex("job").fair().acquire().await.map(drop) }
        });
        soon("a renewal", asked).await.unwrap();
        assert!(matches!(guard.state(), GuardState::Uncertain { .. }), "{:?}", guard.state());
        proxy.let_go();
        until("the new run's word", || matches!(guard.state(), GuardState::Held { .. })).await;
        // The lease is no longer for the clock that went back.
        let left = ann.inspect("job").await.unwrap().unwrap().record.holders[0].remaining;
        assert!(left <= ms(60_000), "{left:?}");
        guard.release().await.unwrap();
        soon("the next holder", waits).await.unwrap().unwrap();
    });
}
