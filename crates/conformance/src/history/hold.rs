//! One hold as its owner saw it: what the checks compare.

use std::fmt;

use bandog_core::mode::Mode;

/// A time on the one clock of a history.
pub type Nanos = u64;

/// An end that nobody saw.
pub const OPEN: Nanos = Nanos::MAX;

/// From the call to its return; the effect lies somewhere in between, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When the call was made.
    pub from: Nanos,
    /// When it returned; [`OPEN`] if it never did.
    pub to: Nanos,
}

impl Span {
    /// A call that has not happened.
    pub const NEVER: Self = Self { from: OPEN, to: OPEN };
}

/// How a hold came by its turn, for the fairness check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Granted without being told to wait.
    Newcomer,
    /// Told at this time that it stands in the queue.
    Queued(Nanos),
    /// May pass the queue: an upgrade, or a pass within a process that was not asked to be fair.
    Exempt,
}

/// One hold of the lock, from acquire to its end.
///
/// An upgrade is two holds: the shared one released during the upgrade call, the exclusive one acquired during it. A
/// downgrade is two holds with one token. Re-entry is either one hold with [depth changes](super::DepthChange) or nested
/// holds with one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Who held; re-entry is within one owner.
    pub owner: u64,
    /// The fencing token.
    pub token: u64,
    /// Alone, shared, or some permits.
    pub mode: Mode,
    /// The acquire.
    pub asked: Span,
    /// How it got its turn.
    pub place: Place,
    /// The release, or [`Span::NEVER`].
    pub released: Span,
    /// When the owner was told of the loss, or died; [`OPEN`] if it was not.
    pub lost_at: Nanos,
    /// When the owner stops believing without being told; [`OPEN`] if the lease outlives the history.
    pub deadline: Nanos,
}

impl Hold {
    /// A hold that was asked for, granted and not yet ended.
    pub fn new(owner: u64, token: u64, mode: Mode, from: Nanos, to: Nanos) -> Self {
        let asked = Span { from, to };
        let (place, released) = (Place::Newcomer, Span::NEVER);
        Self { owner, token, mode, asked, place, released, lost_at: OPEN, deadline: OPEN }
    }

    /// The same hold after a release; `to` is [`OPEN`] when the answer never came.
    #[must_use]
    pub fn released(self, from: Nanos, to: Nanos) -> Self {
        Self { released: Span { from, to }, ..self }
    }

    /// The same hold, lost at a time.
    #[must_use]
    pub fn lost(self, at: Nanos) -> Self {
        Self { lost_at: at, ..self }
    }

    /// The same hold, believed in until a time at most.
    #[must_use]
    pub fn believed_until(self, deadline: Nanos) -> Self {
        Self { deadline, ..self }
    }

    /// The same hold, told at a time that it had a place in the queue.
    #[must_use]
    pub fn queued(self, told: Nanos) -> Self {
        Self { place: Place::Queued(told), ..self }
    }

    /// Start of the time for which the owner certainly believed that it held.
    pub fn since(&self) -> Nanos {
        self.asked.to
    }

    /// End of that time, itself not included.
    pub fn until(&self) -> Nanos {
        self.released.from.min(self.lost_at).min(self.deadline)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.mode == Mode::Shared
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive
    }

    /// Whether both are the same turn of one owner, entered twice.
    pub(super) fn is_reentry_of(&self, other: &Self) -> bool {
        self.owner == other.owner && self.token == other.token
    }

    /// A recording nobody can judge: something ends before it begins.
    pub(super) fn is_malformed(&self) -> bool {
        let backwards = |span: Span| span.to < span.from;
        backwards(self.asked) || backwards(self.released) || self.asked.to == OPEN || self.released.from < self.asked.to
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, token, .. } = self;
        match self.mode {
            Mode::Exclusive => write!(f, "owner {owner} (token {token}, exclusive")?,
            Mode::Shared => write!(f, "owner {owner} (token {token}, shared")?,
            Mode::Permits { count, of } => write!(f, "owner {owner} (token {token}, {count} of {of}")?,
        }
        write!(f, ", asked {}..{}, ", self.asked.from, self.asked.to)?;
        match self.until() {
            OPEN => f.write_str("never ended)"),
            until => write!(f, "held until {until})"),
        }
    }
}
