//! A client of its own in a process of its own: it blocks, and notes when news arrives.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Heard, Sender, channel};
use std::time::Duration;

use bandog_conformance::run::block_on;
use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::Reply;
use bandog_core::op::{Body, Claim, News, Op, Patience, Release, Renew, Renewal, Verdict};
use bandog_core::store::Ask;
use bandog_core::store::{Outcome, Push, Receiver, Store, StoreError, StoreErrorKind};
use bandog_core::token::Stamp;
use bandog_sqlite::{Settings, SqliteStore};
use rustix::time::{ClockId, clock_gettime};

use crate::common::wait_until_closed;

/// How often the store may say that others keep the file busy: after this it is no coincidence.
const BUSY: u32 = 30;

pub(crate) struct Person {
    pub(crate) store: SqliteStore,
    client: Client,
    news: Heard<(u64, Push)>,
    _inbox: Arc<dyn Receiver>,
}

struct Door(Sender<(u64, Push)>);

impl Receiver for Door {
    fn answered(&self, _: &LockName, _: u64, _: Result<Reply, StoreError>) {}

    fn deliver(&self, push: Push) {
        drop(self.0.send((nanos(), push)));
    }
    fn connected(&self, _: bool) {}
}

/// A clock that all processes of the machine share.
pub(crate) fn nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

pub(crate) fn name(text: &str) -> LockName {
    LockName::new(text).expect("a lock name")
}

/// Nothing was executed, and it may go well the next time.
fn is_kept_busy(error: &StoreError) -> bool {
    (error.kind, error.outcome) == (StoreErrorKind::Unready, Outcome::NotExecuted)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Person {
    pub(crate) fn open(path: impl AsRef<Path>) -> Self {
        Self::with(path, Settings::default())
    }

    pub(crate) fn with(path: impl AsRef<Path>, settings: Settings) -> Self {
        let store = SqliteStore::with(path, settings).unwrap_or_else(|error| panic!("open: {error}"));
        let bits = u128::from(getrandom::u64().expect("random numbers")) << 64 | u128::from(std::process::id());
        let client = Client::new(ClientId::from_random(bits), Who::default());
        let (sender, news) = channel();
        let inbox: Arc<dyn Receiver> = Arc::new(Door(sender));
        block_on(store.listen(client.inbox(), Arc::downgrade(&inbox))).expect("to listen");
        Self { store, client, news, _inbox: inbox }
    }

    /// A claim of `lease` milliseconds that waits if need be.
    pub(crate) fn ask(&self, lease: u64) -> Claim {
        Claim {
            id: self.client.fresh(),
            inbox: self.client.inbox(),
            who: Arc::clone(self.client.who()),
            mode: Mode::Exclusive,
            lease: Lease::new(millis(lease)).expect("a lease"),
            window: millis(lease),
            fair: false,
            patience: Patience::Queue,
            not_after: self.store.time() + millis(60_000),
            ballot: None,
            after: None,
        }
    }

    pub(crate) fn claim(&self, lock: &str, claim: &Claim) -> Verdict {
        match self.send(lock, Op::Acquire(claim.clone())) {
            Body::Verdict(verdict) => verdict,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a free lock.
    pub(crate) fn take(&self, lock: &str, lease: u64) -> (HolderId, Stamp) {
        let claim = self.ask(lease);
        match self.claim(lock, &claim) {
            Verdict::Granted(grant) => (claim.id, grant.stamp),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn renew(&self, lock: &str, id: HolderId, lease: u64) -> bool {
        let lease = Lease::new(millis(lease)).expect("a lease");
        matches!(self.send(lock, Op::Renew(Renew::new(id, lease))), Body::Renewal(Renewal::Renewed { .. }))
    }

    pub(crate) fn release(&self, lock: &str, id: HolderId) {
        self.send(lock, Op::Release(Release { id, not_after: None, again: None }));
    }

    /// Asks again while others keep the file busy, as a client does: on a busy machine a second is soon over.
    pub(crate) fn send(&self, lock: &str, op: Op) -> Body {
        let mut answers = (0..BUSY).map(|_| block_on(self.store.apply(name(lock), op.clone())));
        let answer = answers.find(|answer| !answer.as_ref().is_err_and(is_kept_busy));
        let answer = answer.unwrap_or_else(|| panic!("{lock}: kept busy {BUSY} times"));
        answer.unwrap_or_else(|error| panic!("{lock}: {error}")).body
    }

    /// Goes, and waits until its files are closed: its worker ends after its last handle.
    pub(crate) fn close(self) {
        let path = self.store.path().to_owned();
        drop(self);
        wait_until_closed(&path);
    }

    /// Waits for a grant of this claim; when it came, and its stamp.
    pub(crate) fn wait(&self, id: HolderId, length: Duration) -> Option<(u64, Stamp)> {
        while let Ok((at, push)) = self.news.recv_timeout(length) {
            match push.news {
                News::Granted { number, stamp, .. } if number == id.number => return Some((at, stamp)),
                _ => {}
            }
        }
        None
    }
}
