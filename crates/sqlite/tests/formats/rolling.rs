//! A rolling upgrade under load, and back, on one file: nobody is kept out, nobody is let in twice, tokens grow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use bandog_core::format::Format;
use bandog_core::op::{Op, Patience, Reply};
use bandog_core::store::{Outcome, StoreError, StoreErrorKind};

use crate::common::{Directory, Machine};
use crate::older::Older;
use crate::{apply, claim, client, granted, header, put, release};

const WORKERS: usize = 4;
/// So many sections each worker makes before the next one is replaced.
const SECTIONS: u64 = 6;

/// Which build a worker is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// It knows format 2 alone.
    Before,
    /// This one.
    Now,
}

/// What the lock is there to protect.
#[derive(Default)]
struct Resource {
    taken: AtomicBool,
    token: AtomicU64,
    doubles: AtomicU64,
    stale: AtomicU64,
}

impl Resource {
    fn enter(&self, token: u64) {
        let twice = self.taken.swap(true, Ordering::SeqCst);
        self.doubles.fetch_add(u64::from(twice), Ordering::SeqCst);
        let last = self.token.fetch_max(token, Ordering::SeqCst);
        self.stale.fetch_add(u64::from(last >= token), Ordering::SeqCst);
        std::thread::yield_now();
        self.taken.store(false, Ordering::SeqCst);
    }
}

struct Worker {
    build: Build,
    stop: Arc<AtomicBool>,
    sections: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

struct Site {
    directory: Directory,
    machine: Arc<Machine>,
    resource: Arc<Resource>,
    started: u128,
}

impl Site {
    fn start(&mut self, build: Build) -> Worker {
        self.started += 1;
        let (path, machine, resource) = (self.directory.file(), Arc::clone(&self.machine), Arc::clone(&self.resource));
        let (stop, sections, seed) = (Arc::default(), Arc::default(), self.started);
        let (stopped, made) = (Arc::clone(&stop), Arc::clone(&sections));
        let thread = std::thread::spawn(move || {
            let mut caller = caller(build, &path, &machine);
            work(seed, &stopped, &mut caller, |token| {
                resource.enter(token);
                AtomicU64::fetch_add(&made, 1, Ordering::SeqCst);
            });
        });
        Worker { build, stop, sections, thread }
    }

    /// Every worker makes some sections from now on.
    fn goes_on(&self, workers: &[Worker]) {
        let before: Vec<u64> = workers.iter().map(|worker| worker.sections.load(Ordering::SeqCst)).collect();
        for (worker, before) in workers.iter().zip(before) {
            while worker.sections.load(Ordering::SeqCst) < before + SECTIONS {
                assert!(!worker.thread.is_finished(), "{:?} was refused", worker.build);
                std::thread::yield_now();
            }
        }
        assert_eq!(self.resource.doubles.load(Ordering::SeqCst), 0, "two at once");
        assert_eq!(self.resource.stale.load(Ordering::SeqCst), 0, "a token that did not grow");
    }

    fn replace(&mut self, workers: &mut Vec<Worker>, build: Build) {
        for _ in 0..WORKERS {
            workers.remove(0).stop();
            workers.push(self.start(build));
            self.goes_on(workers);
        }
    }

    fn put(&self, workers: &[Worker], format: Format) {
        drop(put(&self.directory.file(), &self.machine, format));
        assert_eq!(header(&self.directory.file()), i32::from(format.number()));
        self.goes_on(workers);
    }
}

type Caller = Box<dyn FnMut(Op) -> Reply>;

fn caller(build: Build, path: &Path, machine: &Arc<Machine>) -> Caller {
    match build {
        Build::Before => {
            let mut older = Older::open(path, machine).unwrap();
            Box::new(move |op| older.apply("job", &op).unwrap())
        }
        Build::Now => {
            let store = machine.open(path);
            Box::new(move |op| patiently(|| apply(&store, "job", op.clone())))
        }
    }
}

/// Another may write for longer than the store waits for.
fn patiently(mut call: impl FnMut() -> Result<Reply, StoreError>) -> Reply {
    loop {
        match call() {
            Err(error) if error.kind == StoreErrorKind::Unready && error.outcome == Outcome::NotExecuted => {}
            answer => return answer.unwrap(),
        }
    }
}

fn work(seed: u128, stopped: &AtomicBool, call: &mut Caller, mut section: impl FnMut(u64)) {
    let client = client(seed);
    while !stopped.load(Ordering::SeqCst) {
        let claim = claim(&client, Patience::Try);
        match granted(&call(Op::Acquire(claim.clone()))) {
            Some(stamp) => {
                section(stamp.micros());
                call(release(claim.id));
            }
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn rolling_upgrade_and_rollback_refuse_nobody_and_let_nobody_in_twice() {
    let (directory, machine) = (Directory::in_memory(), Machine::new());
    drop(put(&directory.file(), &machine, Format::OLDEST));
    let mut site = Site { directory, machine, resource: Arc::default(), started: 0 };
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| site.start(Build::Before)).collect();
    site.goes_on(&workers);
    site.replace(&mut workers, Build::Now);
    site.put(&workers, Format::NEWEST);
    site.put(&workers, Format::OLDEST);
    site.replace(&mut workers, Build::Before);
    workers.into_iter().for_each(Worker::stop);
}
