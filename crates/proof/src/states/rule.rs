//! The rules that can be taken away, and what each removal must break.

use super::promise;

/// One rule of the lock. Taking it away changes one line of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Rule 1: the deadline of a pushed grant counts from the last "still queued".
    PushDeadline,
    /// Rule 1: "still queued" counts from before the send of the request it answers.
    StillQueuedSend,
    /// Rule 1: only a transmission that was answered "still queued" counts.
    StillQueuedAnswered,
    /// Rule 2: every other deadline counts from before the send of the request.
    ReplyDeadline,
    /// Rule 2: a reply carries what remains of the lease.
    Remaining,
    /// Rule 3: a fresh id per claim.
    FreshId,
    /// Rule 3: expiry and death are "done" too.
    EndMark,
    /// Rule 4: a claim refuses itself after its not-after.
    NotAfter,
    /// Rule 4: a release that follows an unanswered claim leaves a done mark.
    DoneMark,
    /// Rule 4: the release that answers a grant for an unknown id leaves a done mark too.
    UnknownGrant,
    /// The assumption beside rule 4: no copy of a claim outlives its answer.
    OneCopy,
    /// Rule 5: a heartbeat reports the grant that it finds.
    HeartbeatReports,
    /// Rule 5: a heartbeat refreshes live-until.
    HeartbeatRefreshes,
    /// Rule 5: a heartbeat never queues.
    HeartbeatCreatesNothing,
    /// Rule 5: a renewal is refused once the lease end has passed, even if nobody purged the hold.
    NoRevival,
    /// A grant from the queue lasts for the claim window until it is confirmed.
    ClaimWindow,
    /// A cancel ends whatever the id has, also a grant it has not heard of.
    CancelEndsGrant,
    /// A release or cancel hands on in the same step.
    HandOn,
    /// No newcomer passes a live waiter, not even at the instant of expiry.
    NoNewcomer,
    /// Grants follow the order of the queue.
    QueueOrder,
    /// Every grant mints a token, also at a hand-off.
    TokenPerGrant,
}

/// All of them, in the order of the design.
pub const RULES: [Rule; 21] = [
    Rule::PushDeadline,
    Rule::StillQueuedSend,
    Rule::StillQueuedAnswered,
    Rule::ReplyDeadline,
    Rule::Remaining,
    Rule::FreshId,
    Rule::EndMark,
    Rule::NotAfter,
    Rule::DoneMark,
    Rule::UnknownGrant,
    Rule::OneCopy,
    Rule::HeartbeatReports,
    Rule::HeartbeatRefreshes,
    Rule::HeartbeatCreatesNothing,
    Rule::NoRevival,
    Rule::ClaimWindow,
    Rule::CancelEndsGrant,
    Rule::HandOn,
    Rule::NoNewcomer,
    Rule::QueueOrder,
    Rule::TokenPerGrant,
];

impl Rule {
    /// What happens instead when it is taken away.
    pub fn removed(self) -> &'static str {
        match self {
            Self::PushDeadline => "a pushed grant counts from its receipt",
            Self::StillQueuedSend => "\"still queued\" counts from its receipt",
            Self::StillQueuedAnswered => "an unanswered heartbeat counts as \"still queued\"",
            Self::ReplyDeadline => "a lease counts from the receipt of its reply",
            Self::Remaining => "a reply carries the length of the lease, not what remains",
            Self::FreshId => "a client claims with the same id again",
            Self::EndMark => "no done mark at expiry and death",
            Self::NotAfter => "a claim has no not-after",
            Self::DoneMark => "no done mark at a release",
            Self::UnknownGrant => "no done mark at the release for an unknown grant",
            Self::OneCopy => "the network keeps copies of an answered claim",
            Self::HeartbeatReports => "a heartbeat does not report the grant",
            Self::HeartbeatRefreshes => "a heartbeat does not refresh live-until",
            Self::HeartbeatCreatesNothing => "a heartbeat queues an id that is gone",
            Self::NoRevival => "a renewal revives a hold that is over",
            Self::ClaimWindow => "a grant from the queue lasts a full lease unconfirmed",
            Self::CancelEndsGrant => "a cancel only leaves the queue",
            Self::HandOn => "a release does not hand on",
            Self::NoNewcomer => "a newcomer takes a lock whose lease is over",
            Self::QueueOrder => "the last in the queue is granted first",
            Self::TokenPerGrant => "a hand-off mints no token",
        }
    }

    /// The promise that breaks without it.
    pub fn guards(self) -> &'static str {
        match self {
            Self::PushDeadline
            | Self::StillQueuedSend
            | Self::StillQueuedAnswered
            | Self::ReplyDeadline
            | Self::Remaining
            | Self::FreshId => promise::ONE_BELIEVER,
            Self::EndMark
            | Self::NotAfter
            | Self::DoneMark
            | Self::UnknownGrant
            | Self::OneCopy
            | Self::HeartbeatCreatesNothing
            | Self::NoRevival
            | Self::CancelEndsGrant => promise::ONE_WAY,
            Self::HeartbeatReports | Self::HeartbeatRefreshes => promise::NOBODY_FORGOTTEN,
            Self::ClaimWindow => promise::WINDOW,
            Self::HandOn => promise::NO_IDLE_LOCK,
            Self::NoNewcomer | Self::QueueOrder => promise::ORDER,
            Self::TokenPerGrant => promise::TOKENS,
        }
    }
}
