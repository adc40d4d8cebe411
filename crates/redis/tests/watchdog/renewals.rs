//! Check (a): renewals run in time, and a renewal thread that stands still is replaced.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};

use bandog::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store};
use bandog::{GuardState, LockConfig, Strategy};
use bandog_core::holder::InboxId;
use bandog_core::time::LeaseTime;
use bandog_redis::RedisStore;

use crate::support::{hasty, ms, on_a_server, soon, store, until};
use crate::{PERIOD, recovered, watched};

/// A store whose next call for the renewal thread never comes back: it holds up the thread that asks.
#[derive(Clone)]
struct Trap {
    inner: Arc<dyn Store>,
    gate: Arc<Gate>,
    /// Whether it is the handle of the renewal thread.
    renews: bool,
}

#[derive(Default)]
struct Gate {
    armed: AtomicBool,
    caught: AtomicBool,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Holds the caller until the end of the test.
    fn pass(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.caught.store(true, Ordering::SeqCst);
            drop(self.opened.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap());
        }
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Store for Trap {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn time(&self) -> LeaseTime {
        self.inner.time()
    }
    fn submit(&self, calls: Vec<Call>) {
        if self.renews {
            self.gate.pass();
        }
        self.inner.submit(calls);
    }
    fn sends_at_once(&self) -> bool {
        self.inner.sends_at_once()
    }
    fn list(&self, query: Listing) -> Answer<Page> {
        self.inner.list(query)
    }
    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.inner.listen(inbox, receiver)
    }
    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.connection(), gate: Arc::clone(&self.gate), renews: true })
    }
    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        self.inner.probe(connection)
    }
    fn is_open(&self, connection: Connection) -> bool {
        self.inner.is_open(connection)
    }
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trap({:?})", self.inner)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

async fn trapped(store: RedisStore) -> (bandog::Locks, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let trap = Trap { inner: Arc::new(store), gate: Arc::clone(&gate), renews: false };
    let config = LockConfig::builder().lease(ms(6_000)).watchdog_period(PERIOD).build().unwrap();
    (hasty().store(trap).defaults(config).build().unwrap(), gate)
}

#[test]
fn a_renewal_thread_that_stands_still_is_replaced_and_loses_nothing() {
    on_a_server(async |server| {
        let (locks, gate) = trapped(store(&server.url()).await).await;
        let mut events = locks.events();
        let mut guards = Vec::new();
        for n in 0..50 {
            guards.push(locks.mutex(format!("job:{n}")).acquire().await.unwrap());
        }
        let left = locks.mutex("left").lease(ms(60_000)).acquire().await.unwrap();
        gate.armed.store(true, Ordering::SeqCst);
        // What the thread was about to send when it was caught.
        drop(left);
        until("the thread to be caught", || gate.caught.load(Ordering::SeqCst)).await;
        until("the finding", || locks.health().findings.renewal >= 1).await;
        assert!(recovered(&mut events, Strategy::Repair).await, "another takes over");
        drop(soon("a lock that was let go meanwhile", locks.mutex("left").acquire()).await.unwrap());
        // Longer than a lease: whoever is held now was renewed by the new thread.
        tokio::time::sleep(ms(7_000)).await;
        assert!(guards.iter().all(|guard| guard.is_held()));
        assert!(locks.health().ready, "{}", locks.health());
        // The old one comes round and ends, and does no harm.
        gate.open();
        let before = locks.health().findings;
        tokio::time::sleep(ms(1_000)).await;
        assert_eq!(locks.health().findings, before);
        for guard in guards {
            soon("the release", guard.release()).await.unwrap();
        }
    });
}

#[test]
fn a_silent_server_is_found_and_what_it_kept_is_renewed_when_it_answers() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let mut events = locks.events();
        let guard = locks.mutex("job").lease(ms(6_000)).acquire().await.unwrap();
        server.stop();
        until("doubt", || matches!(guard.state(), GuardState::Uncertain { .. })).await;
        until("a finding", || locks.health().findings.renewal > 0).await;
        assert!(!locks.health().ready);
        server.go_on();
        assert!(
            soon("the repair", async {
                loop {
                    if recovered(&mut events, Strategy::Repair).await
                        && matches!(guard.state(), GuardState::Held { .. })
                    {
                        return true;
                    }
                }
            })
            .await
        );
        until("health", || locks.health().ready).await;
    });
}

#[test]
fn a_server_that_stays_stopped_is_a_loss_in_time_and_a_repair_that_failed() {
    on_a_server(async |server| {
        let locks = watched(&server.url()).await;
        let guard = locks.mutex("job").lease(ms(1_500)).acquire().await.unwrap();
        server.kill();
        soon("the loss", guard.lost()).await;
        let health = locks.health();
        assert!(health.findings.renewal > 0 && health.recoveries_failed > 0, "{health:?}");
        until("not ready", || !locks.health().ready).await;
    });
}
