//! How often a hold is renewed, and the terms that follow from it: when a renewal is due, how long an answer may take,
//! when to try again.
//!
//! [`RenewalPolicy`] is what people set. [`Terms`] is the policy checked against a lease; the driver makes it once and
//! every [`LeaseTracker`](super::LeaseTracker) of that lease copies it. Pure arithmetic, no state.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::lease::{Drift, Lease};
use crate::text::Length;
use crate::time::Moment;

/// The resolution of the timers: no step is shorter.
const TICK: Duration = Duration::from_millis(1);
/// A first retry comes no later than this, however long the lease.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// No two retries are further apart than this, however long the lease.
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// The time from one renewal to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// A fraction of the lease, between 0 and 1.
    Fraction {
        /// Numerator.
        num: u32,
        /// Denominator.
        den: u32,
    },
    /// A period, shorter than the lease.
    Period(Duration),
}

/// How often and how many times a hold is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalPolicy {
    /// The time from one renewal to the next.
    pub every: Every,
    /// How many renewals; `None` is no limit, 0 a fixed lease.
    pub max_renewals: Option<u32>,
}

impl Default for RenewalPolicy {
    /// Every third of the lease, without limit: two thirds of it remain for retries.
    fn default() -> Self {
        Self { every: Every::Fraction { num: 1, den: 3 }, max_renewals: None }
    }
}

impl RenewalPolicy {
    /// A fixed lease: never renewed, gone at its end.
    pub fn fixed() -> Self {
        Self { max_renewals: Some(0), ..Self::default() }
    }

    fn period(self, lease: Duration) -> Result<Duration, RenewalError> {
        match self.every {
            Every::Fraction { num, den } if num == 0 || num >= den => Err(RenewalError::Fraction { num, den }),
            Every::Fraction { num, den } => Ok((lease * num / den).max(TICK)),
            Every::Period(every) if every < TICK || every >= lease => Err(RenewalError::Period { every, lease }),
            Every::Period(every) => Ok(every),
        }
    }
}

/// Why a renewal policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenewalError {
    /// The fraction is not between 0 and 1.
    #[error("renewing every {num}/{den} of the lease: the fraction must be more than 0 and less than 1")]
    Fraction {
        /// Numerator given.
        num: u32,
        /// Denominator given.
        den: u32,
    },
    /// The margin for drifting clocks leaves too little of the lease.
    #[error(
        "of a lease of {} the margin for drifting clocks leaves only {}: ask for a longer lease or a smaller drift",
        Length(*lease),
        Length(*safe)
    )]
    Drift {
        /// The lease.
        lease: Duration,
        /// What is left of it.
        safe: Duration,
    },
    /// The period is longer than the lease, or too short.
    #[error(
        "renew_every is {} and the lease {}: it must be at least {} and shorter than the lease",
        Length(*every),
        Length(*lease),
        Length(TICK)
    )]
    Period {
        /// The period given.
        every: Duration,
        /// The lease it is for.
        lease: Duration,
    },
}

/// A policy that fits its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    lease: Lease,
    period: Span,
    patience: Span,
    drift_per_mille: u32,
    drift_constant: Span,
    /// [`NO_LIMIT`], or how many.
    max_renewals: u32,
}

/// Stands for renewals without limit.
const NO_LIMIT: u32 = u32::MAX;

/// A span of a lease, in microseconds. A lease lasts some minutes at most, and every hold and waiter has several spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    micros: u32,
}

impl Span {
    fn rounded_down(span: Duration) -> Self {
        Self { micros: u32::try_from(span.as_micros()).unwrap_or(u32::MAX) }
    }

    fn rounded_up(span: Duration) -> Self {
        Self { micros: u32::try_from(span.as_nanos().div_ceil(1000)).unwrap_or(u32::MAX) }
    }

    fn length(self) -> Duration {
        Duration::from_micros(self.micros.into())
    }
}

impl Terms {
    /// Checks a policy against the lease it is for. An attempt without an answer counts as failed after
    /// `response_timeout`, or sooner if the lease is so short that otherwise fewer than four attempts would fit.
    ///
    /// # Errors
    /// [`RenewalError`] names both values that do not go together.
    pub fn new(
        policy: RenewalPolicy,
        lease: Lease,
        drift: Drift,
        response_timeout: Duration,
    ) -> Result<Self, RenewalError> {
        if drift.safe(lease.length()) * 2 < lease.length() {
            return Err(RenewalError::Drift { lease: lease.length(), safe: drift.safe(lease.length()) });
        }
        let period = policy.period(lease.length())?;
        let patience = response_timeout.min(room(lease, period) / 4).max(TICK);
        Ok(Self {
            lease,
            period: Span::rounded_down(period),
            patience: Span::rounded_down(patience),
            drift_per_mille: drift.per_mille,
            // Rounded so that the margin never becomes smaller.
            drift_constant: Span::rounded_up(drift.constant),
            max_renewals: policy.max_renewals.unwrap_or(NO_LIMIT),
        })
    }

    /// The lease.
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// The time from one renewal to the next.
    pub fn period(&self) -> Duration {
        self.period.length()
    }

    /// How long an attempt may be without an answer before it counts as failed.
    pub fn patience(&self) -> Duration {
        self.patience.length()
    }

    /// Whether the lease is never renewed.
    pub fn is_fixed(&self) -> bool {
        self.exhausted(0)
    }

    /// Whether renewals are counted.
    pub fn is_limited(&self) -> bool {
        self.max_renewals != NO_LIMIT
    }

    /// Whether `used` renewals leave no further one.
    pub(super) fn exhausted(&self, used: u32) -> bool {
        self.is_limited() && used >= self.max_renewals
    }

    /// How overdue a renewal may be before the hold is uncertain: a period, or half of the time for retries.
    pub(super) fn slack(&self) -> Duration {
        self.period().min(room(self.lease, self.period()) / 2)
    }

    /// When a lease with `remaining` left at some time after `sent` ends for this client.
    pub(super) fn end(&self, sent: Moment, remaining: Duration) -> Moment {
        self.drift().deadline(sent, remaining.min(self.lease.length()))
    }

    /// When to renew after an answer to a request of `sent` that left `remaining`: one period later. Of a shorter
    /// remainder, such as a claim window, the same share or half of it; always some time before the end.
    pub(super) fn renew_at(&self, sent: Moment, remaining: Duration) -> Moment {
        let (lease, remaining) = (self.lease.length(), remaining.min(self.lease.length()));
        let safe = self.drift().safe(remaining);
        let share = part(remaining, self.period(), lease).max(remaining / 2);
        tick(sent + self.period().min(share).min(safe - safe / 16).max(TICK))
    }

    /// When to give up on an attempt made at `since`.
    pub(super) fn give_up_at(&self, since: Moment) -> Moment {
        tick(since + self.patience())
    }

    /// When to try again after the attempt that made `failures` failed at `now`; `None` if there is no time.
    ///
    /// Steps double, but never beyond half of the time left, so that tries become denser towards the end.
    pub(super) fn retry_at(&self, now: Moment, failures: u32, end: Moment) -> Option<Moment> {
        let backoff = self.backoff();
        let after = backoff.step(failures.saturating_sub(1)).min(end.since(now) / 2);
        (after >= backoff.first()).then(|| tick(now + after))
    }

    fn drift(&self) -> Drift {
        Drift { per_mille: self.drift_per_mille, constant: self.drift_constant.length() }
    }

    fn backoff(&self) -> Backoff {
        let room = room(self.lease, self.period());
        let first = (self.period() / 4).min(room / 64).clamp(TICK, FIRST_RETRY);
        // Never refused: the clamps keep the steps in order.
        Backoff::new(first, (room / 8).clamp(first, LONGEST_RETRY)).unwrap_or_default()
    }
}

/// The time for retries between a renewal's moment and the end of the lease.
fn room(lease: Lease, period: Duration) -> Duration {
    lease.length().saturating_sub(period).max(lease.length() / 16)
}

/// `whole` × `num` / `den`. Leases are minutes at most, so nothing is cut off.
fn part(whole: Duration, num: Duration, den: Duration) -> Duration {
    let nanos = whole.as_nanos() * num.as_nanos() / den.as_nanos();
    u64::try_from(nanos).map_or(whole, Duration::from_nanos)
}

/// The moment rounded down to the resolution of the timers, so that a timer is never late and never finds nothing to do.
pub(super) fn tick(moment: Moment) -> Moment {
    Moment::from_nanos(moment.millis() * 1_000_000)
}
