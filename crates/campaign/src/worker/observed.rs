//! The Redis store with a note of when each claim went out and when it was told of its place.
//!
//! The store's queue decides who is first, so this is where coming and going must be seen: between the note of sending and the
//! note of the answer the claim got its place.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bandog_core::holder::{InboxId, PublicId};
use bandog_core::name::LockName;
use bandog_core::op::{Body, Op, Reply, Verdict};
use bandog_core::store::{Answer, Answers, Capabilities, Inbox, Listing, Page, Pulse, Store, Way};
use bandog_core::time::LeaseTime;

use crate::clock::nanos;

/// What was noted of claims, by the id that people see.
pub(super) type Notes = Arc<Mutex<HashMap<PublicId, Note>>>;

/// One claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    pub(super) sent: u64,
    /// When it was answered "queued", if it was.
    pub(super) told: Option<u64>,
}

pub(super) struct Observed {
    store: Arc<dyn Store>,
    notes: Notes,
}

impl Observed {
    pub(super) fn new(store: impl Store, notes: &Notes) -> Self {
        Self { store: Arc::new(store), notes: Arc::clone(notes) }
    }
}

/// Takes the note of a claim, which is needed once.
pub(super) fn take(notes: &Notes, id: PublicId) -> Option<Note> {
    notes.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
}

impl Store for Observed {
    fn apply(&self, name: LockName, op: Op) -> Answer<Reply> {
        let id = claimed(&op);
        if let Some(id) = id {
            // A claim that is sent again keeps its first note.
            let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.entry(id).or_insert_with(|| Note { sent: nanos(), told: None });
        }
        let (answer, notes) = (self.store.apply(name, op), Arc::clone(&self.notes));
        Box::pin(async move {
            let reply = answer.await?;
            if let Some(id) = id.filter(|_| is_queued(&reply)) {
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                // None when its grant was faster than this answer, and its hold is over.
                notes.entry(id).and_modify(|note| note.told = note.told.or_else(|| Some(nanos())));
            }
            Ok(reply)
        })
    }

    fn lane(&self) -> Arc<dyn Store> {
        Arc::new(Self { store: self.store.lane(), notes: Arc::clone(&self.notes) })
    }

    fn probe(&self, way: Way) -> Answer<Pulse> {
        self.store.probe(way)
    }

    fn is_open(&self, way: Way) -> bool {
        self.store.is_open(way)
    }

    fn batch(&self, calls: Vec<(LockName, Op)>) -> Answers {
        self.store.batch(calls)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn time(&self) -> LeaseTime {
        self.store.time()
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.store.list(query)
    }

    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Inbox>) -> Answer<()> {
        self.store.listen(inbox, receiver)
    }
}

fn claimed(op: &Op) -> Option<PublicId> {
    match op {
        Op::Acquire(claim) => Some(claim.id.public()),
        Op::Release(release) => release.again.as_ref().map(|claim| claim.id.public()),
        _ => None,
    }
}

fn is_queued(reply: &Reply) -> bool {
    match &reply.body {
        Body::Verdict(verdict) => matches!(verdict, Verdict::Queued(_)),
        Body::Release(reply) => matches!(reply.again, Some(Verdict::Queued(_))),
        _ => false,
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.store, f)
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.store, f)
    }
}
