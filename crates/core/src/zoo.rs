//! Bugs on purpose, one at a time, for the proof that the proof would find them.
//!
//! Each is a mistake that a lock has been known to make. Without the feature `zoo` [`has`] is constantly false and none of this is
//! compiled in.

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(not(feature = "zoo"), allow(dead_code, reason = "named by code that is compiled out"))]
        pub enum Bug {
            $($(#[doc = $doc])+ $name,)+
        }

        #[cfg(feature = "zoo")]
        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What it does wrong.
            pub fn story(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+),)+
                }
            }
        }
    };
}

bugs! {
    /// A release ends whoever holds, not the hold it names.
    ReleaseAnybody,
    /// The release of one reader ends all readers.
    ReleaseAllReaders,
    /// Stamps are not stepped beyond the last one.
    EqualStamps,
    /// Stamps are a counter in the record, without the clock as floor.
    CounterStamps,
    /// An upgrade does not wait for the other readers.
    UpgradeWithSharers,
    /// A reader fits beside a writer.
    ReaderBesideWriter,
    /// One permit more than there are.
    OnePermitMore,
    /// A lease ends a tenth early in the store.
    EndsEarly,
    /// A lease never ends in the store.
    NeverExpires,
    /// A grant from the queue needs no confirmation.
    NoClaimWindow,
    /// A revocation ends the hold at once although nobody said so.
    RevokeEndsAtOnce,
    /// A newcomer passes the queue, at expiry and at any other time.
    NewcomerPasses,
    /// One operation cleans up and hands on without bound.
    UnboundedWork,
    /// Done ids are not remembered.
    NoDoneMarks,
    /// A late claim is served all the same.
    NoNotAfter,
    /// The deadline counts from the reply, not from the send.
    DeadlineFromReply,
    /// No margin for clocks that differ in rate.
    NoDriftMargin,
    /// The claim window counts from the receipt of the push.
    WindowFromReceipt,
    /// A local hand-off keeps the token.
    SharedCohortToken,
    /// The deadline moves when a renewal is sent, not when it is confirmed.
    DeadlineAtSend,
    /// The deadline is not looked at.
    NeverLost,
    /// A hold is still passed on locally after its downgrade.
    DowngradeStillPasses,
    /// Re-entry does not ask who the owner is.
    ReentryByAnybody,
    /// An answer reaches the waiter that has the index now.
    MixedUpWaiters,
    /// Claims are named by running numbers, which anybody can guess, and a revocation is believed without asking.
    TrustingPushes,
    /// A holder id is used again.
    HolderIdReused,
    /// A retry under way keeps the timer busy.
    SpinningRetry,
    /// A place that the store has forgotten is not claimed anew.
    ForgottenPlace,
    /// Waiters send no heartbeats.
    NoHeartbeats,
    /// A store that failed is not tried again.
    NoRetry,
    /// Any answer forgives any failure, whichever connection it came by.
    AnyAnswerForgives,
    /// Heartbeats that are not answered say nothing of the store.
    HeartbeatsMayFail,
    /// After a loss the line goes on believing in its hold.
    LineBelievesInLostHold,
    /// A confirmation that failed is taken for a success.
    ConfirmationIgnored,
    /// A renewal's answer is credited to whichever hold is in its place now.
    RenewalOfAnother,
    /// A grant that nobody picked up goes on, and its waiter keeps it too.
    RotatedButKept,
    /// A grant that was cancelled before it was seen is never given back.
    CancelledGrantKept,
    /// A lost hold is taken again without proof that nobody had it since.
    RegainWithoutProof,
    /// A hold that was taken again keeps its token.
    RegainKeepsToken,
    /// The deadline of a hold that was taken again counts from the reply.
    RegainFromReply,
    /// A hold is taken again although it was revoked.
    RegainAfterRevoke,
    /// A hold that is not wanted any more is taken again for its holder all the same.
    RegainForTheEnded,
    /// The store lets a claim follow any stamp.
    AnySuccessor,
    /// The store lets a claim follow a hold that was revoked.
    RevokedComesBack,
    /// The store does not tell those who come too late that their hold was revoked.
    RevocationUntold,
    /// A check of the record revives a hold that was lost.
    CheckRevives,
    /// A check of the record moves the deadline, counted from its answer.
    CheckMovesDeadline,
}

#[cfg(feature = "zoo")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static LOOSE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Runs something with one bug on this thread.
    pub fn with<R>(bug: Option<Bug>, run: impl FnOnce() -> R) -> R {
        LOOSE.set(bug);
        let result = run();
        LOOSE.set(None);
        result
    }

    pub(crate) fn has(bug: Bug) -> bool {
        LOOSE.get() == Some(bug)
    }
}

#[cfg(feature = "zoo")]
pub(crate) use switch::has;
#[cfg(feature = "zoo")]
pub use switch::with;

#[cfg(not(feature = "zoo"))]
pub(crate) const fn has(_: Bug) -> bool {
    false
}
