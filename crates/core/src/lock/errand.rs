//! What the machine wants sent, and what each request was for: the driver hands it back with the answer.

use crate::op::{Body, Op};
use crate::time::Moment;

use super::{Grip, Slip};

/// What the driver must send to the store.
#[derive(Debug, Clone)]
pub struct Action {
    /// To be handed back with the answer.
    pub errand: Errand,
    /// The request.
    pub op: Op,
    /// Which connection.
    pub lane: Lane,
}

/// Which of a client's connections a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The one in the caller's runtime.
    Claims,
    /// The same, written before the caller goes on: it is not known to let others run soon.
    AtOnce,
    /// The renewal thread's own: ordered, and alive when the caller's runtime is gone.
    Renewals,
}

/// What a request was for.
#[derive(Debug, Clone)]
pub enum Errand {
    /// A claim or an upgrade.
    Claim {
        /// Its sequence number.
        seq: u64,
        /// Whether it is one of those of which only so many are under way at once.
        counts: bool,
    },
    /// The confirmation of a claim before it is believed.
    Confirm {
        /// The claim.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
    /// A renewal.
    Renew {
        /// Which hold.
        grip: Grip,
        /// The hold's id when it was sent.
        seq: u64,
        /// Time before the send.
        sent: Moment,
        /// Whoever waits for it.
        slip: Option<Slip>,
        /// It is worth most then, and may be kept until then; whoever keeps it asks [`Machine::handle_due`](super::Machine::handle_due).
        due: Moment,
    },
    /// A heartbeat for these claims.
    Heartbeat {
        /// Sequence numbers, in the order of the request.
        seqs: Vec<u64>,
        /// Time before the send.
        sent: Moment,
    },
    /// A look at the record of a hold, which changes nothing.
    Look {
        /// Which hold.
        grip: Grip,
        /// The hold's id when it was sent.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
    /// A release.
    Part {
        /// Key of the parting.
        key: usize,
    },
    /// A downgrade of a hold.
    Downgrade {
        /// Which hold.
        grip: Grip,
        /// The hold's id when it was sent.
        seq: u64,
        /// Whoever waits for it.
        slip: Slip,
    },
    /// The withdrawal of an upgrade whose wait is over.
    Withdraw {
        /// The upgrade's claim.
        seq: u64,
        /// Time before the send.
        sent: Moment,
    },
}

impl Errand {
    /// Whether this is the kind of answer that its request asks for.
    pub(super) fn is_answered_by(&self, body: &Body) -> bool {
        match self {
            Self::Claim { .. } => matches!(body, Body::Verdict(_)),
            Self::Confirm { .. } | Self::Renew { .. } => matches!(body, Body::Renewal(_)),
            Self::Heartbeat { .. } | Self::Look { .. } => matches!(body, Body::Standings(_)),
            Self::Part { .. } => matches!(body, Body::Release(_)),
            Self::Downgrade { .. } | Self::Withdraw { .. } => matches!(body, Body::Downgraded(_)),
        }
    }
}
