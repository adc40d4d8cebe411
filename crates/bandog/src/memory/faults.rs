//! Faults that a test asks the memory store for.

use std::collections::VecDeque;
use std::time::Duration;

use bandog_core::op::Op;
use bandog_core::store::{ReplyTo, StoreErrorKind};

use crate::driver::lock;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// How an operation goes wrong.
///
/// ```
/// use bandog::{Fault, MemoryStore, OpKind};
/// let store = MemoryStore::new();
/// store.inject(OpKind::Renew, Fault::LoseReply, 3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Unavailable, and certainly not executed.
    Refuse,
    /// Refused for good: no permission.
    Deny,
    /// Executed, but the answer never comes.
    LoseReply,
    /// Never executed, and no answer comes.
    LoseRequest,
    /// Executed after `before`, answered `after` that.
    Delay {
        /// Until it is executed.
        before: Duration,
        /// From there until it is answered.
        after: Duration,
    },
    /// Executed and answered, but a message to an inbox is dropped; the kind of operation does not matter.
    LosePush,
}

/// Which operations a fault is for.
///
/// ```
/// use bandog::{Fault, MemoryStore, OpKind};
/// MemoryStore::new().inject(OpKind::Any, Fault::Refuse, u32::MAX); // nothing works
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpKind {
    /// Claims.
    Acquire,
    /// Renewals and confirmations.
    Renew,
    /// Heartbeats.
    Heartbeat,
    /// Releases, with or without queueing again.
    Release,
    /// Upgrades.
    Upgrade,
    /// Downgrades and withdrawals.
    Downgrade,
    /// Everything.
    Any,
}

#[derive(Default)]
pub(super) struct Faults {
    planned: Mutex<VecDeque<(OpKind, Fault, u32)>>,
    // Looked at before the mutex: a store without faults should not pay for them.
    count: AtomicUsize,
    /// Calls that are never answered.
    lost: Mutex<Vec<ReplyTo>>,
}

/// What to do with one operation.
pub(super) enum Plan {
    Answer,
    Fail(StoreErrorKind),
    LoseReply,
    LoseRequest,
    Delay(Duration, Duration),
}

impl Faults {
    pub(super) fn add(&self, on: OpKind, fault: Fault, times: u32) {
        let mut planned = lock(&self.planned);
        planned.push_back((on, fault, times));
        self.count.store(planned.len(), Ordering::Release);
    }

    pub(super) fn clear(&self) {
        lock(&self.planned).clear();
        self.count.store(0, Ordering::Release);
    }

    /// Never answers a call.
    pub(super) fn lose(&self, reply: ReplyTo) {
        lock(&self.lost).push(reply);
    }

    pub(super) fn plan(&self, op: &Op) -> Plan {
        match self.take(|on, fault| fault != Fault::LosePush && on.covers(op)) {
            None | Some(Fault::LosePush) => Plan::Answer,
            Some(Fault::Refuse) => Plan::Fail(StoreErrorKind::Unavailable),
            Some(Fault::Deny) => Plan::Fail(StoreErrorKind::Denied),
            Some(Fault::LoseReply) => Plan::LoseReply,
            Some(Fault::LoseRequest) => Plan::LoseRequest,
            Some(Fault::Delay { before, after }) => Plan::Delay(before, after),
        }
    }

    pub(super) fn drops_push(&self) -> bool {
        self.take(|_, fault| fault == Fault::LosePush).is_some()
    }

    fn take(&self, wanted: impl Fn(OpKind, Fault) -> bool) -> Option<Fault> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut planned = lock(&self.planned);
        let at = planned.iter().position(|(on, fault, _)| wanted(*on, *fault))?;
        let (_, fault, times) = &mut planned[at];
        let fault = *fault;
        *times = times.saturating_sub(1);
        if *times == 0 {
            planned.remove(at);
        }
        self.count.store(planned.len(), Ordering::Release);
        Some(fault)
    }
}

impl OpKind {
    fn covers(self, op: &Op) -> bool {
        match self {
            Self::Any => !matches!(op, Op::Inspect | Op::Tend),
            Self::Acquire => matches!(op, Op::Acquire(_)),
            Self::Renew => matches!(op, Op::Renew(_)),
            Self::Heartbeat => matches!(op, Op::Heartbeat(_)),
            Self::Release => matches!(op, Op::Release(_)),
            Self::Upgrade => matches!(op, Op::Upgrade(_)),
            Self::Downgrade => matches!(op, Op::Downgrade(_)),
        }
    }
}
