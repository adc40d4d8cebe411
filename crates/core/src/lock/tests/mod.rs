//! Scripted stories of one lock machine in virtual time: the test plays the store, the caller and the clock.
//!
//! Actions are written as words, `acquire #1`, `release #1 again #2`, and answered by naming them. `#n` is the number of a claim.

mod batches;
mod cancels;
mod claims;
mod closing;
mod failures;
mod holds;
mod idle;
mod in_flight;
mod liveness;
mod passing;
mod pushes;
mod regains;
mod revoked;
mod signals;
mod table;
mod ticks;
mod upgrades;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::holder::{ClientId, HolderId, Who};
use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{
    Body, Claim, Downgraded, Grant, Line, News, Op, Parted, Patience, Queued, Refusal, Release, ReleaseReply,
};
use crate::op::{Renewal, Reply, Standing, Verdict};
use crate::renewal::{RenewalPolicy, Terms};
use crate::store::{StoreError, StoreErrorKind};
use crate::time::{LeaseTime, RunId};
use crate::token::Stamp;

const LEASE: u64 = 30_000;
/// What the clock of the store shows when the client's shows zero.
const STORE: u64 = 1_000_000;
const RUN: RunId = RunId(1);
/// The period of the watchdog.
const PERIOD: u64 = 5_000;

/// A machine and everything around it.
struct Lock {
    machine: Machine,
    now: Moment,
    run: RunId,
    out: Vec<(String, RequestContext)>,
    lost: Vec<HoldKey>,
    told: Vec<Event>,
}

impl Lock {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let client = Client::new(client(), Who::default());
        let machine = Machine::new(Arc::new(settings), client, 1);
        Self { machine, now: Moment::ZERO, run: RUN, out: Vec::new(), lost: Vec::new(), told: Vec::new() }
    }

    /// A machine whose first ask is granted at once.
    fn held(ask: Ask) -> (Self, HoldKey) {
        let mut lock = Self::new();
        let hold_key = lock.hold(ask, 10);
        (lock, hold_key)
    }

    /// Asks and is granted at once, by an answer with this stamp.
    fn hold(&mut self, ask: Ask, stamp: u64) -> HoldKey {
        let waiter = self.ask(ask);
        let action = self.action();
        self.answer(&action, granted(stamp));
        self.hold_key(waiter)
    }

    /// A machine with one claim in the store's queue.
    fn queued(ask: Ask) -> (Self, WaiterId) {
        let mut lock = Self::new();
        let waiter = lock.ask(ask);
        assert_eq!(lock.action(), "acquire #1");
        lock.answer("acquire #1", queued(10));
        (lock, waiter)
    }

    fn ask(&mut self, ask: Ask) -> WaiterId {
        self.machine.handle_ask(self.now, ask)
    }

    /// The next action in words, or `nothing`.
    fn action(&mut self) -> String {
        let store = STORE + self.now.millis();
        let Some(action) = self.machine.poll_action(self.now, || LeaseTime::from_millis(store)) else {
            return "nothing".into();
        };
        // Nothing is kept here: every renewal is due at once.
        if matches!(action.context, RequestContext::Renew { due, .. } if due > self.now) {
            self.machine.handle_due(&action.context);
        }
        let words = words(&action.op);
        self.out.push((words.clone(), action.context));
        words
    }

    /// The next action, a renewal that is kept until it is due.
    fn kept(&mut self) -> RequestContext {
        self.machine.poll_action(self.now, || LeaseTime::ZERO).expect("an action").context
    }

    /// The next action, a renewal: when its latest start of the lease was, by the clock of the store; 0 if it names none.
    fn started(&mut self) -> u64 {
        let action = self.machine.poll_action(self.now, || LeaseTime::ZERO).expect("an action");
        self.out.push((words(&action.op), action.context));
        match action.op {
            Op::Renew(renew) => renew.started.millis().saturating_sub(STORE),
            other => panic!("not a renewal but {other:?}"),
        }
    }

    /// Every action there is, in order.
    fn actions(&mut self) -> Vec<String> {
        std::iter::from_fn(|| Some(self.action()).filter(|words| words != "nothing")).collect()
    }

    /// The store answers the action of these words.
    fn answer(&mut self, words: &str, body: Body) {
        let at = LeaseTime::from_millis(STORE + self.now.millis());
        let reply = Reply { at, run: self.run, more: false, body };
        self.come_back(words, Ok(reply));
    }

    /// Nobody knows what became of the action.
    fn lose_answer(&mut self, words: &str) {
        self.come_back(words, Err(StoreError::unknown("no answer")));
    }

    /// The action was certainly not executed.
    fn refuse(&mut self, words: &str, kind: StoreErrorKind) {
        self.come_back(words, Err(StoreError::not_executed(kind, "refused")));
    }

    fn come_back(&mut self, words: &str, result: Result<Reply, StoreError>) {
        let at = self.out.iter().position(|(sent, _)| sent == words);
        let at = at.unwrap_or_else(|| panic!("{words:?} was not sent; out are {:?}", self.out));
        let (_, context) = self.out.remove(at);
        self.machine.handle_reply(self.now, context, result);
    }

    fn push(&mut self, ordinal: u64, stamp: u64) {
        self.push_before(ordinal, stamp, Line::default());
    }

    /// The push of a grant with others behind it.
    fn push_before(&mut self, ordinal: u64, stamp: u64, line: Line) {
        let news = News::Granted { number: number(ordinal), stamp: Stamp::from_micros(stamp), line };
        self.machine.handle_push(self.now, self.run, news);
    }

    /// The push of a revocation.
    fn push_revoked(&mut self, ordinal: u64) {
        let news = News::Revoked { number: number(ordinal), reason: "asked".into() };
        self.machine.handle_push(self.now, self.run, news);
    }

    /// The store revokes a hold, and says so when it is asked.
    fn revoke(&mut self, ordinal: u64) {
        self.push_revoked(ordinal);
        let question = format!("renew #{ordinal}");
        assert_eq!(self.actions(), std::slice::from_ref(&question));
        let revoked = Renewal::Revoked { reason: "asked".into(), remaining: millis(LEASE / 2) };
        self.answer(&question, Body::Renewal(revoked));
    }

    /// Time passes, and every timer on the way is served.
    fn wait(&mut self, millis: u64) {
        let target = self.now + Duration::from_millis(millis);
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= target) {
            let turn = at > self.now;
            self.now = self.now.max(at);
            self.machine.handle_timeout(self.now);
            assert!(turn || self.machine.poll_timeout() != Some(at), "a timer that is always due");
        }
        self.now = target;
    }

    /// Time passes while the process stands still.
    fn pause(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    /// The outcome of a waiter in words, or `waits`.
    fn pick(&mut self, waiter: WaiterId) -> String {
        match self.machine.take_outcome(self.now, waiter) {
            None => "waits".into(),
            Some(WaitOutcome::Granted { token, .. }) => format!("granted {}.{}", token.stamp().micros(), token.local()),
            Some(WaitOutcome::Done) => "done".into(),
            Some(WaitOutcome::Failed(failure)) => told(&failure),
        }
    }

    /// The hold of a waiter that must be granted by now.
    fn hold_key(&mut self, waiter: WaiterId) -> HoldKey {
        match self.machine.take_outcome(self.now, waiter) {
            Some(WaitOutcome::Granted { hold_key, .. }) => hold_key,
            other => panic!("not granted but {other:?}"),
        }
    }

    fn cancel(&mut self, waiter: WaiterId) {
        self.machine.handle_cancel(self.now, waiter);
    }

    /// Drops a guard.
    fn release(&mut self, hold_key: HoldKey) {
        drop(self.machine.handle_release(self.now, hold_key, false));
    }

    /// How a hold stands, in words.
    fn state(&self, hold_key: HoldKey) -> String {
        match self.machine.state(self.now, hold_key) {
            None => "released".into(),
            Some(HoldState::Held { until }) => format!("held to {}", until.millis()),
            Some(HoldState::Uncertain { until }) => format!("uncertain to {}", until.millis()),
            Some(HoldState::Lost(reason)) => format!("lost: {reason}"),
        }
    }

    /// The waiters that became ready since the last call.
    fn ready(&mut self) -> Vec<WaiterId> {
        let mut ready = Vec::new();
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Ready(waiter) => ready.push(waiter),
                Event::Lost(lost) => self.lost.push(lost.hold_key),
                Event::Renewed { .. } | Event::RenewalFailed(_) | Event::Uncertain { .. } => {}
                other => self.told.push(other),
            }
        }
        ready
    }

    /// The holds that were lost since the last call.
    fn losses(&mut self) -> Vec<HoldKey> {
        self.ready();
        std::mem::take(&mut self.lost)
    }

    /// What was found and recovered since the last call, in words.
    fn news(&mut self) -> Vec<String> {
        self.ready();
        let told = std::mem::take(&mut self.told);
        told.iter().map(event_words).collect()
    }

    /// The watchdog ticks.
    fn tick(&mut self) -> Tally {
        self.machine.handle_tick(self.now, millis(PERIOD))
    }

    /// Nothing is to be sent, nothing is under way, nobody waits.
    fn is_at_rest(&mut self) -> bool {
        self.actions().is_empty() && self.out.is_empty() && self.machine.is_idle()
    }
}

/// Which claim it is: the first one is 1.
fn ordinal(id: HolderId) -> u64 {
    client().ordinal(id.number)
}

/// The number by which a push names that claim.
fn number(ordinal: u64) -> u64 {
    client().holder(ordinal).number
}

fn client() -> ClientId {
    ClientId::from_random(7)
}

fn words(op: &Op) -> String {
    let number = |claim: &Claim| format!("#{}", ordinal(claim.id));
    match op {
        Op::Acquire(claim) if claim.patience == Patience::Try => format!("try {}", number(claim)),
        Op::Acquire(claim) => format!("acquire {}", number(claim)),
        Op::Renew(renew) => format!("renew #{}", ordinal(renew.id)),
        Op::Heartbeat(beat) => {
            beat.ids.iter().fold("heartbeat".into(), |words, id| format!("{words} #{}", ordinal(*id)))
        }
        Op::Release(release) => release_words(release),
        Op::Upgrade(upgrade) => format!("upgrade #{} to {}", ordinal(upgrade.from), number(&upgrade.claim)),
        Op::Downgrade(id) => format!("downgrade #{}", ordinal(*id)),
        other => format!("{other:?}"),
    }
}

fn release_words(release: &Release) -> String {
    let again = release.again.as_ref().map_or(String::new(), |claim| format!(" again #{}", ordinal(claim.id)));
    let named = release.not_after.map_or(String::new(), |at| format!(" not after {}", at.millis() - STORE));
    format!("release #{}{named}{again}", ordinal(release.id))
}

fn event_words(event: &Event) -> String {
    match event {
        Event::Found { finding, .. } => format!("found {finding:?}"),
        Event::Recovered { strategy, worked, token, .. } => {
            let strategy = strategy.map_or("Repair".into(), |strategy| format!("{strategy:?}"));
            format!("{strategy} {} under {}", if *worked { "worked" } else { "failed" }, token.stamp().micros())
        }
        other => format!("{other:?}"),
    }
}

fn told(failure: &Failure) -> String {
    match failure {
        Failure::Timeout(_) => "timeout".into(),
        Failure::Busy(_) => "busy".into(),
        Failure::WouldDeadlock => "would deadlock".into(),
        Failure::TooDeep => "too deep".into(),
        Failure::Refused(refusal) => format!("refused: {refusal}"),
        Failure::Store(error) => format!("store: {error}"),
        Failure::Lost(reason) => format!("lost: {reason}"),
        Failure::Closed => "closed".into(),
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn terms(policy: RenewalPolicy, lease: u64) -> Terms {
    let settings = Settings::default();
    Terms::new(policy, Lease::new(millis(lease)).unwrap(), settings.drift, settings.response).unwrap()
}

fn writer() -> Ask {
    Ask {
        mode: Mode::Exclusive,
        fair: false,
        patience: Patience::Queue,
        since: Moment::ZERO,
        until: Moment::FAR,
        owner: None,
        reentrant: false,
        terms: terms(RenewalPolicy::default(), LEASE),
        limits: None,
        recovery: Recovery::Notify,
    }
}

fn reader() -> Ask {
    Ask { mode: Mode::Shared, ..writer() }
}

fn fair() -> Ask {
    Ask { fair: true, ..writer() }
}

fn owned(owner: u64) -> Ask {
    Ask { owner: Some(OwnerId::new(owner)), reentrant: true, ..writer() }
}

fn watched(limits: HoldLimits) -> Ask {
    Ask { limits: limits.shared(), ..writer() }
}

fn fixed() -> Ask {
    Ask { terms: terms(RenewalPolicy::fixed(), LEASE), ..writer() }
}

fn within(wait: u64, ask: Ask) -> Ask {
    Ask { until: Moment::ZERO + millis(wait), ..ask }
}

const NOBODY: Line = Line { waiters: 0, fair: false };
const SOMEBODY: Line = Line { waiters: 1, fair: false };

fn grant(stamp: u64, remaining: u64, line: Line) -> Grant {
    Grant { stamp: Stamp::from_micros(stamp), remaining: millis(remaining), line }
}

fn granted(stamp: u64) -> Body {
    Body::Verdict(Verdict::Granted(grant(stamp, LEASE, NOBODY)))
}

fn place(last: u64) -> Queued {
    Queued { last: Stamp::from_micros(last), ahead: 0, blocker: None }
}

fn queued(last: u64) -> Body {
    Body::Verdict(Verdict::Queued(place(last)))
}

fn refused(refusal: Refusal) -> Body {
    Body::Verdict(Verdict::Refused(refusal))
}

fn renewed_with(stamp: u64, line: Line) -> Body {
    Body::Renewal(Renewal::Renewed { stamp: Stamp::from_micros(stamp), remaining: millis(LEASE), line })
}

fn renewed(stamp: u64) -> Body {
    renewed_with(stamp, NOBODY)
}

fn not_holder() -> Body {
    Body::Renewal(Renewal::NotHolder)
}

fn standing(standing: Standing) -> Body {
    Body::Standings(vec![standing])
}

fn parted(parted: Parted) -> Body {
    Body::Release(ReleaseReply { parted, again: None })
}

fn released() -> Body {
    parted(Parted::Hold)
}

fn again(verdict: Verdict) -> Body {
    Body::Release(ReleaseReply { parted: Parted::Hold, again: Some(verdict) })
}
