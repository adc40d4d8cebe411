//! The scripts' texts. The first connection to a life of a server loads them; [`Codec`](crate::Codec) says which one a call needs.
//!
//! Each is composed at build time: the opening, the operation's head with its fast path, the engine, the operation itself. The
//! fast path returns before any function of the engine is made.

macro_rules! lua {
    ($($part:literal),+) => { concat!($(include_str!(concat!("lua/", $part, ".lua"))),+) };
}

// What an operation needs before and behind the engine.
macro_rules! engine {
    ([$($head:literal),*], [$($part:literal),+]) => {
        concat!(
            lua!("clock", "open" $(, $head)*),
            lua!("state", "holders", "done", "queue", "back", "settle", "enter"),
            lua!("close", $($part),+)
        )
    };
}

/// One script per operation, one for listings, one for many renewals, and one for many claims and releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Script {
    /// For [`Op::Acquire`](bandog_core::op::Op::Acquire).
    Acquire,
    /// For [`Op::Renew`](bandog_core::op::Op::Renew).
    Renew,
    /// For [`Op::Heartbeat`](bandog_core::op::Op::Heartbeat).
    Heartbeat,
    /// For [`Op::Release`](bandog_core::op::Op::Release).
    Release,
    /// For [`Op::Upgrade`](bandog_core::op::Op::Upgrade).
    Upgrade,
    /// For [`Op::Downgrade`](bandog_core::op::Op::Downgrade).
    Downgrade,
    /// For [`Op::Revoke`](bandog_core::op::Op::Revoke).
    Revoke,
    /// For [`Op::Inspect`](bandog_core::op::Op::Inspect).
    Inspect,
    /// For [`Op::Tend`](bandog_core::op::Op::Tend).
    Tend,
    /// For listings: writes nothing.
    Peek,
    /// For many [`Op::Renew`](bandog_core::op::Op::Renew) at once.
    RenewAll,
    /// For many [`Op::Acquire`](bandog_core::op::Op::Acquire) and [`Op::Release`](bandog_core::op::Op::Release) at once.
    Bundle,
}

impl Script {
    /// All of them, for loading at once.
    pub const ALL: [Self; 12] = [
        Self::Acquire,
        Self::Renew,
        Self::Heartbeat,
        Self::Release,
        Self::Upgrade,
        Self::Downgrade,
        Self::Revoke,
        Self::Inspect,
        Self::Tend,
        Self::Peek,
        Self::RenewAll,
        Self::Bundle,
    ];

    /// The text for `EVAL` and `SCRIPT LOAD`; the same bytes in every process of one version.
    pub fn text(self) -> &'static str {
        match self {
            Self::Acquire => {
                engine!(["acquire_open", "claim_fast", "acquire_head", "join"], ["audit", "claim", "acquire"])
            }
            Self::Renew => engine!(["renew_fast", "renew_head", "renew_line"], ["renew"]),
            Self::Heartbeat => engine!([], ["heartbeat"]),
            Self::Release => {
                engine!(["release_open", "release_fast", "release_head", "hand_off"], ["audit", "claim", "release"])
            }
            Self::Upgrade => engine!([], ["audit", "claim", "upgrade"]),
            Self::Downgrade => engine!([], ["downgrade"]),
            Self::Revoke => engine!([], ["audit", "revoke"]),
            Self::Inspect => engine!([], ["audit", "view", "inspect"]),
            Self::Tend => engine!([], ["tend"]),
            Self::Peek => lua!("clock", "open", "state", "holders", "queue", "audit", "view", "peek"),
            Self::RenewAll => lua!("clock", "renew_fast", "renew_all"),
            // The fast paths as functions, with what they keep from one lock for the next.
            Self::Bundle => concat!(
                lua!("clock"),
                "local front, packed_stamp, packed_late, packed_lease, rest, rest_end\n",
                "local function claim(s, card, form, retention, longest, mode, lease, not_after, ballot)\n",
                "local plain, record, ends, stamp = s\n",
                lua!("claim_fast"),
                "return record, ends, stamp\nend\n",
                "local function release(s, id, form, retention, longest, named, not_after, again)\n",
                "local plain, record, ends = s\n",
                lua!("release_fast"),
                "return record, ends\nend\n",
                lua!("bundle")
            ),
        }
    }

    /// A word for logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Heartbeat => "heartbeat",
            Self::Release => "release",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Revoke => "revoke",
            Self::Inspect => "inspect",
            Self::Tend => "tend",
            Self::Peek => "peek",
            Self::RenewAll => "renew_all",
            Self::Bundle => "bundle",
        }
    }
}
