//! The smallest store there is: the ledger under a mutex, with a clock that is moved by hand and a place to break it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use bandog_conformance::bench::BoxFuture;
use bandog_conformance::{Bench, Passage, Terms};
use bandog_core::holder::InboxId;
use bandog_core::ledger::{Applied, LISTED, Limits, Record};
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Reply};
use bandog_core::pattern::Pattern;
use bandog_core::store::{
    Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Push, Receiver, Store, StoreError, StoreErrorKind,
};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};

/// Milliseconds on a clock that stands still unless told.
#[derive(Debug)]
pub(crate) struct Clock(AtomicU64);

impl Passage for Clock {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        let millis = u64::try_from(length.as_nanos().div_ceil(1_000_000)).expect("a short time");
        Box::pin(async move {
            self.0.fetch_add(millis, Ordering::Relaxed);
        })
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

impl Clock {
    pub(crate) fn now(&self) -> Now {
        let millis = self.0.load(Ordering::Relaxed);
        let wall = WallTime::from_micros(1_700_000_000_000_000 + millis * 1000);
        Now { lease: LeaseTime::from_millis(millis), wall, run: RunId(7) }
    }
}

pub(crate) type Records = BTreeMap<LockName, Record>;

/// How a store may go wrong; the defaults are right.
pub(crate) trait Twist: Send + Sync + 'static {
    fn apply(&self, desk: &Desk, records: &mut Records, now: Now, name: LockName, op: &Op) -> Applied {
        desk.apply_right(records, now, name, op)
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { in_process: true, ..Capabilities::FULL }
    }
    fn limits(&self) -> Limits {
        limits()
    }
    fn list(&self, page: Page, _: &Listing) -> Page {
        page
    }
    fn batch(&self, replies: Vec<Result<Reply, StoreError>>) -> Vec<Result<Reply, StoreError>> {
        replies
    }
    fn lane(&self, desk: &Arc<Desk>) -> Arc<dyn Store> {
        Arc::new(Handle(Arc::clone(desk)))
    }
    fn time(&self, now: LeaseTime) -> LeaseTime {
        now
    }
    fn tends(&self) -> bool {
        true
    }
    fn answers_inside(&self) -> bool {
        false
    }
    fn is_slow(&self) -> bool {
        false
    }
    fn probe(&self, _: Connection) -> Result<Pulse, StoreError> {
        Ok(Pulse { opened: 1 })
    }
    fn delivers_inside(&self) -> bool {
        false
    }
    fn keeps(&self, record: &Record, now: LeaseTime) -> bool {
        record.expires().is_some_and(|end| end > now)
    }
}

/// What all handles share.
pub(crate) struct Desk {
    pub(crate) clock: Arc<Clock>,
    pub(crate) twist: Arc<dyn Twist>,
    records: Mutex<Records>,
    inboxes: Mutex<HashMap<InboxId, Weak<dyn Receiver>>>,
}

pub(crate) struct Handle(pub(crate) Arc<Desk>);

/// Small enough for every bound to be reached.
pub(crate) fn limits() -> Limits {
    Limits { waiters: 42, sharers: 5, work: 3, max_lease: Duration::from_secs(400), ..Limits::default() }
}

/// A bench with such a store on it.
pub(crate) fn bench(twist: Arc<dyn Twist>) -> Bench {
    let clock = Arc::new(Clock(AtomicU64::new(0)));
    let limits = limits();
    let terms = Terms {
        waiters: Some(limits.waiters),
        sharers: Some(limits.sharers),
        max_lease: Some(limits.max_lease),
        retention: Some(limits.retention),
        ..Terms::VIRTUAL
    };
    Bench::new(Arc::new(Handle(Desk::new(Arc::clone(&clock), twist))), clock, terms)
}

impl Desk {
    pub(crate) fn new(clock: Arc<Clock>, twist: Arc<dyn Twist>) -> Arc<Self> {
        Arc::new(Self { clock, twist, records: Mutex::default(), inboxes: Mutex::default() })
    }

    pub(crate) fn apply_right(&self, records: &mut Records, now: Now, name: LockName, op: &Op) -> Applied {
        records.retain(|_, record| self.twist.keeps(record, now.lease));
        let record = records.entry(name).or_default();
        let mut applied = record.apply(&self.twist.limits(), now, op);
        while applied.reply.more && self.twist.tends() {
            let tended = record.apply(&self.twist.limits(), now, &Op::Tend);
            applied.effects.extend(tended.effects);
            applied.reply.more = tended.reply.more;
        }
        applied
    }

    fn call(&self, name: &LockName, op: &Op) -> Reply {
        self.call_and(name, op, |reply| reply)
    }

    fn call_and<R>(&self, name: &LockName, op: &Op, then: impl FnOnce(Reply) -> R) -> R {
        let now = self.clock.now();
        // A desk serves one thread: a lock that is taken would never be free.
        let mut records = self.records.try_lock().expect("a call within a call");
        let applied = self.twist.apply(self, &mut records, now, name.clone(), op);
        let held = Some(records).filter(|_| self.twist.delivers_inside() || self.twist.answers_inside());
        let held = if self.twist.delivers_inside() { held } else { held.filter(|_| applied.effects.is_empty()) };
        for effect in applied.effects {
            let inbox = self.inboxes.lock().unwrap().get(&effect.inbox).and_then(Weak::upgrade);
            if let Some(inbox) = inbox {
                inbox.deliver(Push { name: name.clone(), run: now.run, news: effect.news });
            }
        }
        let held = held.filter(|_| self.twist.answers_inside());
        let result = then(applied.reply);
        drop(held);
        result
    }

    fn submit(self: &Arc<Self>, mut calls: Vec<Call>) {
        if calls.len() == 1 {
            let Some(Call { name, op, reply, .. }) = calls.pop() else { return };
            if !self.twist.is_slow() {
                return self.call_and(&name, &op, |answer| reply.send(Ok(answer)));
            }
            let desk = Arc::clone(self);
            drop(thread::spawn(move || {
                thread::sleep(Duration::from_millis(1));
                reply.send(Ok(desk.call(&name, &op)));
            }));
            return;
        }
        let replies = calls.iter().map(|call| Ok(self.call(&call.name, &call.op))).collect();
        for (call, reply) in calls.into_iter().zip(self.twist.batch(replies)) {
            call.reply.send(reply);
        }
    }

    fn page(&self, query: &Listing) -> Result<Page, StoreError> {
        let unfit = |error| StoreError::not_executed(StoreErrorKind::Unsupported, format!("{error}"));
        let pattern = query.pattern.clone().map(Pattern::new).transpose().map_err(unfit)?;
        let names: Vec<LockName> = self.records.lock().unwrap().keys().cloned().collect();
        let fits = |name: &&LockName| pattern.as_ref().is_none_or(|pattern| pattern.matches(name.as_str()));
        let after = |name: &&LockName| query.after.as_deref().is_none_or(|after| name.as_str() > after);
        let mut page = Page::default();
        for name in names.iter().filter(after).filter(fits) {
            if query.limit > 0 && page.rows.len() == query.limit {
                page.next = page.rows.last().map(|(name, _)| name.to_string());
                break;
            }
            if let Body::Record(Some(mut view)) = self.call(name, &Op::Inspect).body
                && (!view.holders.is_empty() || !view.waiters.is_empty())
            {
                view.waiters.truncate(LISTED);
                page.rows.push((name.clone(), view));
            }
        }
        Ok(self.twist.list(page, query))
    }
}

impl Store for Handle {
    fn capabilities(&self) -> Capabilities {
        self.0.twist.capabilities()
    }

    fn time(&self) -> LeaseTime {
        self.0.twist.time(self.0.clock.now().lease)
    }

    fn submit(&self, calls: Vec<Call>) {
        self.0.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        true
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        let desk = Arc::clone(&self.0);
        Box::pin(async move { desk.page(&query) })
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.0.inboxes.lock().unwrap().insert(inbox, receiver);
        Box::pin(ready(Ok(())))
    }

    fn connection(&self) -> Arc<dyn Store> {
        self.0.twist.lane(&self.0)
    }

    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        let desk = Arc::clone(&self.0);
        Box::pin(async move { desk.twist.probe(connection) })
    }

    fn is_open(&self, _: Connection) -> bool {
        true
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Desk")
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("desk:")
    }
}
