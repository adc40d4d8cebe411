//! Many tasks, several clients, one store, real threads: never two inside, no update lost, tokens in order.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bandog::{Guard, Locks, MemoryStore};
use bandog_conformance::history::{History, Hold};
use bandog_core::mode::Mode;
use common::Far;

const CLIENTS: usize = 3;
const TASKS: usize = 4;
const ROUNDS: usize = 50;

/// The clock of the history, and the resource under the lock.
#[derive(Default)]
struct Table {
    ticks: AtomicU64,
    counter: AtomicU64,
    history: Mutex<History>,
}

impl Table {
    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, hold: Hold) {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).holds.push(hold);
    }

    /// An increment in two halves: whoever overlaps loses one.
    async fn increment(&self) {
        let read = self.counter.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.counter.store(read + 1, Ordering::SeqCst);
    }
}

async fn writes(table: Arc<Table>, locks: Locks, owner: u64) {
    for round in 0..ROUNDS {
        let request = locks.mutex("job");
        let request = if round % 3 == 0 { request.fair() } else { request };
        let asked = table.tick();
        let guard: Guard = request.acquire().await.expect("granted");
        let hold = Hold::new(owner, guard.token().into(), Mode::Exclusive, asked, table.tick());
        table.increment().await;
        let from = table.tick();
        if round % 2 == 0 {
            guard.release().await.expect("released");
        } else {
            drop(guard);
        }
        table.note(hold.released(from, table.tick()));
    }
}

async fn reads(table: Arc<Table>, locks: Locks, owner: u64) {
    for _ in 0..ROUNDS {
        let asked = table.tick();
        let guard = locks.rwlock("job").read().acquire().await.expect("granted");
        let hold = Hold::new(owner, guard.token().into(), Mode::Shared, asked, table.tick());
        let seen = table.counter.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        assert_eq!(table.counter.load(Ordering::SeqCst), seen, "somebody wrote while we read");
        let from = table.tick();
        guard.release().await.expect("released");
        table.note(hold.released(from, table.tick()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn critical_sections_never_overlap() {
    for far in [false, true] {
        let store = MemoryStore::new();
        let table = Arc::new(Table::default());
        let mut tasks = Vec::new();
        for client in 0..CLIENTS {
            let builder = Locks::builder();
            let builder = if far { builder.store(Far::new(store.clone())) } else { builder.store(store.clone()) };
            let locks = builder.build().unwrap();
            for task in 0..TASKS {
                let owner = u64::try_from(client * 100 + task).unwrap();
                tasks.push(tokio::spawn(writes(Arc::clone(&table), locks.clone(), owner)));
            }
            tasks.push(tokio::spawn(reads(Arc::clone(&table), locks.clone(), 1_000 + u64::try_from(client).unwrap())));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let expected = u64::try_from(CLIENTS * TASKS * ROUNDS).unwrap();
        assert_eq!(table.counter.load(Ordering::SeqCst), expected, "an update was lost");
        let report = table.history.lock().unwrap().check();
        assert!(report.is_safe(), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn permits_never_exceed_the_capacity() {
    let (store, table) = (MemoryStore::new(), Arc::new(Table::default()));
    let mut tasks = Vec::new();
    for owner in 0..8_u64 {
        let (table, locks) = (Arc::clone(&table), Locks::builder().store(store.clone()).build().unwrap());
        tasks.push(tokio::spawn(async move {
            for round in 0..30_u32 {
                let count = 1 + round % 3;
                let asked = table.tick();
                let guard = locks.semaphore("gpu", 4).permits(count).acquire().await.expect("granted");
                let mode = Mode::permits(count, 4).expect("within the capacity");
                let hold = Hold::new(owner, guard.token().into(), mode, asked, table.tick());
                tokio::task::yield_now().await;
                let from = table.tick();
                guard.release().await.expect("released");
                table.note(hold.released(from, table.tick()));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let report = table.history.lock().unwrap().check();
    assert!(report.is_safe(), "{report}");
}
