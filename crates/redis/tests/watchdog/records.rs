//! Check (b): the record names us, with our token, and a lease end that fits.

use std::sync::Arc;

use bandog::{Check, Event, GuardState, LossReason, Strategy};
use bandog_core::store::Ask;
use bandog_rig::{Server, WallClock};

use crate::support::{claim, client, if_possible, is_missing, ms, on_a_server, soon, store, until};
use crate::{next, recovered, watched};

/// The keys of the lock, whatever they are called.
fn keys(server: &Server) -> Vec<String> {
    server.run("KEYS *job*")
}

#[test]
fn a_deleted_record_is_found() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let guard = locks.mutex("job").acquire().await.unwrap();
        for key in keys(&server) {
            let _: u32 = server.run(&format!("DEL {key}"));
        }
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::Gone);
        assert_eq!(locks.health().findings.record, 1);
    });
}

#[test]
fn a_flushed_server_is_found() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let mut guards = Vec::new();
        for n in 0..20 {
            guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
        }
        let _: String = server.run("FLUSHALL");
        for guard in &guards {
            assert_eq!(soon("the loss", guard.lost()).await, LossReason::Gone);
        }
        assert_eq!(locks.health().findings.record, 20);
    });
}

#[test]
fn another_holder_is_found() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let guard = locks.mutex("job").acquire().await.unwrap();
        for key in keys(&server) {
            let _: u32 = server.run(&format!("DEL {key}"));
        }
        let (other, rival) = (store(&server.url()).await, client(9));
        let claimed = other.apply(bandog::LockName::new("job").unwrap(), claim(&other, &rival, ms(700))).await;
        assert!(claimed.is_ok(), "{claimed:?}");
        assert_eq!(soon("the loss", guard.lost()).await, LossReason::Gone);
        assert_eq!(locks.health().findings.record, 1);
        let record = locks.inspect("job").await.unwrap().unwrap().record;
        assert_eq!(record.holders.len(), 1, "the other one keeps it");
    });
}

#[test]
fn a_clock_that_was_set_is_found_and_the_lease_renewed() {
    if is_missing() {
        return;
    }
    let Some(clock) = WallClock::new().map(Arc::new) else { return };
    if_possible(async {
        let server = Server::by(&clock);
        let locks = watched(&server.url()).await;
        let mut events = locks.events();
        let (guard, fixed) = (locks.mutex("job"), locks.mutex("fixed").max_renewals(0));
        let (guard, fixed) = (guard.acquire().await.unwrap(), fixed.acquire().await.unwrap());
        clock.set(24);
        let found = |event: &Event| matches!(event, Event::Found { check: Check::Record, .. });
        let Event::Found { what, .. } = next(&mut events, "the finding", found).await else { unreachable!() };
        assert!(what.contains("of the lease are left"), "{what}");
        assert!(recovered(&mut events, Strategy::Repair).await, "renewed at once");
        until("a full lease", || guard.remaining() > ms(50_000)).await;
        until("the nearer end", || fixed.remaining() < ms(37_000)).await;
        assert!(matches!(fixed.state(), GuardState::Held { .. }));
        assert!(locks.health().findings.record >= 2);
    });
}
