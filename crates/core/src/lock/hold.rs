//! The life of a hold: granted, entered, renewed, checked, lost, and perhaps taken again.
//!
//! | group | what happens |
//! |---|---|
//! | beginning | a claim becomes a hold, and a waiter is given it |
//! | re-entry | who is inside, and who would wait for itself |
//! | renewals | the lease is renewed, doubted, or given up when its time is over |
//! | checks | what the watchdog finds |
//! | alerts | what takes longer than somebody allowed: told once each |
//! | loss | the guard is told, and the local line claims anew |
//! | recovery | what is done about a lost hold |
//!
//! How a hold ends by a release, or goes to the next local waiter, is in [`release`](super::release).
//!
//! # Checks
//! Once in a period the watchdog calls [`Machine::handle_round`]. A look is a heartbeat that names the id of a hold: the store says what
//! it knows of it and changes nothing.
//!
//! | finding | what is done about it |
//! |---|---|
//! | a renewal overdue or failing | caught up with; the next confirmation says that it worked |
//! | a record without us | lost; [recovered](super::Recovery) as the hold wants it, unless it was revoked |
//! | a lease end that does not fit | the nearer end is believed, and the hold renewed at once |
//! | a holder that ended, stands still, or holds for too long | lost; recovered as the hold wants it, but never taken again |
//!
//! # Recovery
//! | lost because | `Notify` | `Release` | `Reacquire` |
//! |---|---|---|---|
//! | expired, unreachable | told | told, released in the store | told, taken again if nobody had it since |
//! | gone from the store | told | told | told, taken again if nobody had it since |
//! | its holder ended, stands still, held for too long; revoked | told | told, released in the store | told |
//! | revoked, and ended in the store | told | told | told |
//! | shut down | told, released in the store | the same | the same |
//!
//! The proof is the store's: the claim is granted only as the successor of our own stamp, and not if that was revoked. In the
//! same request the old hold is released, should the store still have it; the request is sent again until it is answered,
//! with the same id, so that a lost answer is found and not overtaken. What happens to the hold meanwhile (a revocation, the
//! end of its task) ends the attempt. Renewals that are used up are no reason to take it again, and stay used up.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::HolderId;
use crate::lease::Lease;
use crate::mode::Mode;
use crate::op::{Blocker, Downgraded, Grant, Patience, Refusal, Renewal, Standing, Verdict};
use crate::renewal::{Due, Loss, Renewal as Keeping, State as Health};
use crate::store::StoreError;
use crate::time::{LeaseTime, Moment, RunId};
use crate::token::{Stamp, Token};
use crate::zoo::{self, Bug};

use super::claim::{Claiming, Landing, Taker, Wish};
use super::state::{Bustle, HoldKey, KnownRun, Stage};
use super::{
    Ask, Cohort, Event, Finding, Grip, HoldState, How, Lane, LossReason, Lost, Machine, Outcome, OwnerId, Recovery,
    Settings, Slip, Todo, Vigil, Why, Word,
};

/// What a look at a record may be off by besides the drift of clocks and the time it takes.
const JITTER: Duration = Duration::from_millis(100);

const PICKED_UP: u32 = u32::MAX;

/// One hold in the store and its use in this process.
#[derive(Debug)]
pub(super) struct Hold {
    /// Its number among the holds of this lock, given by [`Holds`](super::holds::Holds).
    pub(super) born: u32,
    /// Which of the client's claims it was.
    pub(super) seq: u64,
    /// What the store knows it by: derived once, and needed for every renewal.
    pub(super) id: HolderId,
    pub(super) stamp: Stamp,
    pub(super) local: u16,
    pub(super) mode: Mode,
    pub(super) word: Word,
    pub(super) owner: Option<OwnerId>,
    pub(super) keeping: Keeping,
    /// The place of the slip that it was granted to, until that is picked up; then [`PICKED_UP`].
    granted: u32,
    pub(super) since: Moment,
    pub(super) recovery: Recovery,
    /// Time before the send of the last request whose answer named this hold.
    pub(super) seen: Moment,
    /// When the store last started its lease by a renewal, as it said itself.
    pub(super) started: LeaseTime,
    /// Whether the watchdog has found something that a renewal repairs.
    pub(super) repairing: bool,
    /// Whether the store has confirmed the full lease yet.
    pub(super) confirmed: bool,
    /// Whether a renewal that may confirm it is under way.
    pub(super) confirming: bool,
    pub(super) run: KnownRun,
    /// Whether the store has begun a new run since it last spoke of this hold: it may have forgotten it.
    pub(super) doubted: bool,
    /// Whether it was told that the hold is doubtful.
    pub(super) uncertain: bool,
    pub(super) rare: Option<Box<Rare>>,
}

impl Hold {
    pub(super) fn token(&self) -> Token {
        self.stamp.token(self.local)
    }

    pub(super) fn lease(&self) -> Lease {
        self.keeping.terms().lease()
    }

    pub(super) fn state(&self, now: Moment) -> HoldState {
        if let Some(loss) = self.loss() {
            return HoldState::Lost(loss.clone());
        }
        if zoo::has(Bug::NeverLost) {
            return HoldState::Held { until: Moment::FAR };
        }
        match self.keeping.state(now) {
            Health::Held { until } if self.doubted => HoldState::Uncertain { until },
            Health::Held { until } => HoldState::Held { until },
            Health::Uncertain { until } => HoldState::Uncertain { until },
            Health::Lost { reason } => HoldState::Lost(reason.into()),
        }
    }

    pub(super) fn is_lost(&self, now: Moment) -> bool {
        !self.is_live() || self.deadline() <= now
    }

    /// Whether it was not told that it is lost.
    pub(super) fn is_live(&self) -> bool {
        self.loss().is_none()
    }

    /// Why it was lost, if that was told.
    pub(super) fn loss(&self) -> Option<&LossReason> {
        self.rare.as_ref()?.loss.as_ref()
    }

    /// Whether the store has nothing of it that could be released: it does not know it, or it was released already.
    pub(super) fn left_nothing(&self) -> bool {
        let ended = |rare: &Rare| rare.ended || matches!(rare.loss, Some(LossReason::Gone | LossReason::Shutdown));
        self.rare.as_deref().is_some_and(ended)
    }

    /// A lease that was to end and has ended.
    fn ended_as_agreed(&self, reason: &LossReason) -> bool {
        *reason == LossReason::Expired && self.keeping.is_exhausted()
    }

    pub(super) fn deadline(&self) -> Moment {
        self.keeping.deadline()
    }

    /// When something must be done about this hold.
    pub(super) fn next(&self, settings: &Settings) -> Moment {
        if !self.is_live() {
            return Moment::FAR;
        }
        let overdue = self.max_hold().map_or(Moment::FAR, |max| self.since + max);
        self.keeping.next().at().min(overdue).min(self.pick_by(settings))
    }

    pub(super) fn unanswered(&self) -> Option<LeaseTime> {
        self.rare.as_ref()?.unanswered
    }

    /// The answer to its acquire is there.
    pub(super) fn note_answered(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.unanswered = None;
            self.rare.take_if(|rare| rare.is_common());
        }
    }

    // ---- Its guard ----

    /// Hands the hold to a waiter.
    fn assign(&mut self, now: Moment, slip: Slip, ask: &Ask) {
        self.word = Word::locked();
        self.owner = ask.owner;
        self.since = now;
        self.forget_origin();
        self.set_care(Care::of(now, ask));
        self.recovery = ask.recovery;
        self.granted = slip.index;
    }

    pub(super) fn pick_up(&mut self) {
        self.granted = PICKED_UP;
    }

    pub(super) fn is_picked_up(&self) -> bool {
        self.granted == PICKED_UP
    }

    /// By when it should be picked up; [`FAR`](Moment::FAR) once it was.
    fn pick_by(&self, settings: &Settings) -> Moment {
        if self.is_picked_up() { Moment::FAR } else { self.since + settings.window_of(self.lease()) }
    }

    /// The token that its guard was given first; it may have been exchanged or taken again since.
    fn origin(&self) -> Token {
        self.rare.as_ref().and_then(|rare| rare.origin).unwrap_or_else(|| self.token())
    }

    /// Whether its guard was given this token.
    #[inline]
    pub(super) fn is_of(&self, token: Token) -> bool {
        let latest = self.token();
        match &self.rare {
            None => token == latest,
            Some(_) => self.origin() <= token && token <= latest,
        }
    }

    /// Its guard keeps the token that it was given, whatever the hold has from now on.
    fn keep_origin(&mut self, origin: Token) {
        self.rare_mut().origin = Some(origin);
    }

    /// A new guard comes: the token that another was given counts no more.
    fn forget_origin(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.origin = None;
        }
    }

    // ---- What it hardly ever has ----

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(super) fn care(&self) -> Option<&Care> {
        self.rare.as_ref()?.care.as_ref()
    }

    pub(super) fn care_mut(&mut self) -> Option<&mut Care> {
        self.rare.as_mut()?.care.as_mut()
    }

    fn take_care(&mut self) -> Option<Care> {
        self.rare.as_mut()?.care.take()
    }

    fn set_care(&mut self, care: Option<Care>) {
        if care.is_some() || self.rare.is_some() {
            self.rare_mut().care = care;
            self.rare.take_if(|rare| rare.is_common());
        }
    }

    fn vigil(&self) -> Option<&Vigil> {
        self.care()?.vigil.as_deref()
    }

    fn max_hold(&self) -> Option<Duration> {
        self.vigil()?.max_hold
    }

    fn stands_still(&self, now: Moment) -> bool {
        let within = self.vigil().and_then(|vigil| vigil.progress);
        within.zip(self.care()).is_some_and(|(within, care)| now.since(care.progressed) > within)
    }
}

#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Why it is lost.
    pub(super) loss: Option<LossReason>,
    /// Whether the store has said that it was revoked and has ended: there is nothing to release.
    pub(super) ended: bool,
    pub(super) care: Option<Care>,
    /// Not-after of an acquire whose answer is still out: a push overtook it.
    unanswered: Option<LeaseTime>,
    /// The token that its guard was given first, if it was exchanged or taken again since. It has no other guard after that.
    origin: Option<Token>,
}

impl Rare {
    /// Of a claim whose answer is still out.
    pub(super) fn unanswered(not_after: LeaseTime) -> Box<Self> {
        Box::new(Self { unanswered: Some(not_after), ..Self::default() })
    }

    fn is_common(&self) -> bool {
        let Self { loss, ended, care, unanswered, origin } = self;
        loss.is_none() && !ended && care.is_none() && unanswered.is_none() && origin.is_none()
    }
}

/// What a hold needs to be watched for besides its lease; most need none of it.
#[derive(Debug)]
pub(super) struct Care {
    pub(super) vigil: Option<Arc<Vigil>>,
    pub(super) progressed: Moment,
    /// Whether it was lost, and is being taken again.
    pub(super) regaining: bool,
    pub(super) alerted: Alerted,
}

impl Care {
    pub(super) fn of(now: Moment, ask: &Ask) -> Option<Self> {
        if ask.vigil.is_none() && ask.recovery != Recovery::Reacquire {
            return None;
        }
        let (vigil, alerted) = (ask.vigil.clone(), Alerted::default());
        Some(Self { vigil, progressed: now, regaining: false, alerted })
    }
}

/// What was told of a hold already.
#[derive(Debug, Default)]
pub(super) struct Alerted {
    hold: bool,
    renewal: bool,
}

/// A hold's care, and what is watched for it, if anything is.
fn watched(hold: &mut Hold) -> Option<(&mut Care, Vigil)> {
    let care = hold.care_mut()?;
    let vigil = care.vigil.as_deref().copied()?;
    Some((care, vigil))
}

pub(super) fn counted_from(now: Moment, sent: Moment) -> Moment {
    if zoo::has(Bug::DeadlineFromReply) { now } else { sent }
}

impl From<Loss> for LossReason {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Expired => Self::Expired,
            Loss::Unreachable => Self::Unreachable,
        }
    }
}

impl LossReason {
    /// Whether the lease merely came to its end: nobody ended the hold on purpose.
    fn is_lapse(&self) -> bool {
        matches!(self, Self::Expired | Self::Unreachable | Self::Gone)
    }

    fn is_order(&self) -> bool {
        matches!(self, Self::Revoked(_) | Self::Shutdown)
    }
}

impl Machine {
    // ---- Beginning ----

    /// Turns a claim into a hold and gives it to its waiter.
    pub(super) fn settle_claim(&mut self, now: Moment, seq: u64, slip: Slip, landing: &Landing) {
        let Some(ask) = self.bustle.slips.ask(slip).cloned() else { return };
        let Some(claim) = self.bustle.claims.remove(&seq) else { return };
        let fresh = self.fresh_hold(now, (seq, &claim), &ask, landing);
        // Whoever was in the way has left it.
        self.bustle.blocker = None;
        if let Taker::Upgrade(_, grip) = claim.taker {
            self.exchange(grip, fresh);
            self.finish(slip, Outcome::Done);
            self.note_progress(now);
            return self.attend(now, grip.0);
        }
        let key = self.holds.insert(fresh);
        if self.cohort == Cohort::Claiming(seq) {
            self.cohort = Cohort::Holding(key);
            if claim.local == 0 {
                let latest = self.bustle.slips.serial();
                self.bustle.remote.begin(now, latest, landing.line);
            }
        }
        self.give(now, key, slip, claim.how);
        self.note_progress(now);
        self.attend(now, key);
    }

    fn fresh_hold(&self, now: Moment, (seq, claim): (u64, &Claiming), ask: &Ask, landing: &Landing) -> Hold {
        Hold {
            born: 0,
            seq,
            id: self.client.holder(seq),
            stamp: landing.stamp,
            local: claim.local,
            mode: claim.mode,
            word: Word::locked(),
            owner: ask.owner,
            keeping: Keeping::new(ask.terms, counted_from(now, landing.sent), landing.remaining),
            granted: PICKED_UP,
            since: now,
            seen: landing.sent,
            started: LeaseTime::ZERO,
            repairing: false,
            recovery: ask.recovery,
            confirmed: landing.remaining >= ask.lease().length(),
            confirming: false,
            run: claim.run.id().or(landing.pushed).into(),
            doubted: false,
            uncertain: false,
            rare: claim.run.id().is_none().then(|| Rare::unanswered(claim.not_after)),
        }
    }

    /// An upgrade went through: the guard keeps its grip, the hold behind it is another.
    fn exchange(&mut self, grip: Grip, fresh: Hold) {
        if let Some(hold) = self.holds.get_mut(grip.0) {
            let (born, word, owner, since) = (hold.born, hold.word, hold.owner, hold.since);
            let (care, recovery, origin) = (hold.take_care(), hold.recovery, hold.origin());
            *hold = Hold { born, word, owner, since, recovery, ..fresh };
            hold.set_care(care);
            hold.keep_origin(origin);
        }
    }

    /// Gives a hold to a waiter, who has a claim window to pick it up.
    pub(super) fn give(&mut self, now: Moment, key: HoldKey, slip: Slip, how: How) {
        let Bustle { slips, waits, events, .. } = &mut *self.bustle;
        let Some((ask, hold)) = slips.ask(slip).zip(self.holds.get_mut(key)) else { return };
        let watched = ask.vigil.is_some();
        hold.assign(now, slip, ask);
        let token = hold.token();
        waits.remove(&(ask.until, slip));
        slips.set(slip, Stage::Ready(Outcome::Granted { grip: Grip(key), token, how }));
        events.push_back(Event::Ready(slip));
        if watched {
            self.alert_wait(now, slip);
        }
    }

    /// The slip that a hold was granted to, if that is not picked up yet.
    fn unpicked(&self, hold: &Hold) -> Option<Slip> {
        if hold.is_picked_up() { None } else { self.bustle.slips.at(hold.granted) }
    }

    // ---- Re-entry ----

    /// Looks at the clock before an ask is judged: an ended hold is neither entered again nor in the way.
    pub(super) fn notice_ends(&mut self, now: Moment, owner: Option<OwnerId>) {
        let concerned =
            |key: HoldKey, hold: &Hold| self.cohort == Cohort::Holding(key) || (owner.is_some() && hold.owner == owner);
        let ended = |hold: &Hold| hold.is_live() && hold.deadline() <= now;
        let found = self.holds.iter().filter(|(key, hold)| ended(hold) && concerned(*key, hold));
        for key in found.map(|(key, _)| key).collect::<Vec<_>>() {
            self.attend(now, key);
        }
    }

    /// Whether a queued ask waits behind a writer that waits for the asker's own other hold.
    pub(super) fn waits_for_itself(&self, slip: Slip) -> bool {
        let ask = self.bustle.slips.ask(slip);
        let Some((owner, mode)) = ask.and_then(|ask| Some((ask.owner?, ask.mode))) else { return false };
        let own = || self.holds.iter().map(|(_, hold)| hold).filter(|hold| hold.owner == Some(owner) && hold.is_live());
        match mode {
            Mode::Exclusive => false,
            Mode::Shared => own().next().is_some(),
            // What it holds will not come back while it waits.
            Mode::Permits { count, of } => own().map(|hold| hold.mode.count()).sum::<u32>() + count.get() > of.get(),
        }
    }

    pub(super) fn own_blocker(&self, now: Moment) -> Option<Blocker> {
        let (_, hold) = self.holds.iter().find(|(_, hold)| hold.is_live())?;
        let remaining = hold.deadline().since(now);
        Some(Blocker { holder: hold.id.public(), who: Arc::clone(self.client.who()), remaining })
    }

    // ---- Renewals ----

    /// Looks after a hold: renews it, rotates it, or declares it lost.
    pub(super) fn attend(&mut self, now: Moment, key: HoldKey) {
        let Some(hold) = self.holds.get_mut(key).filter(|hold| hold.is_live()) else { return };
        if hold.max_hold().is_some_and(|max| hold.since + max <= now) {
            return self.lose(now, Grip(key), LossReason::MaxHold);
        }
        match hold.keeping.due(now) {
            Due::Nothing => {}
            Due::Renew => {
                if zoo::has(Bug::DeadlineAtSend) {
                    hold.keeping.confirmed(now, now, hold.lease().length(), true);
                }
                self.bustle.todo.push_back(Todo::Renew(Grip(key), None));
            }
            Due::Lost(loss) => return self.lose(now, Grip(key), loss.into()),
        }
        self.note_doubt(now, key);
        let late = self.holds.get(key).filter(|hold| hold.pick_by(&self.settings) <= now);
        if let Some(slip) = late.and_then(|hold| self.unpicked(hold)) {
            self.rotate(now, key, slip);
        }
    }

    /// `at` is the store's own time of the answer.
    pub(super) fn on_renewal(
        &mut self,
        (now, at): (Moment, LeaseTime),
        (grip, seq, sent): (Grip, u64, Moment),
        slip: Option<Slip>,
        renewal: Renewal,
    ) {
        let same = |hold: &Hold| hold.seq == seq || zoo::has(Bug::RenewalOfAnother);
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| same(hold) && hold.is_live()) else {
            let known = self.holds.get(grip.0).filter(|hold| hold.seq == seq);
            let reason = known.and_then(|hold| hold.loss().cloned()).unwrap_or(LossReason::Gone);
            // Its guard may have left meanwhile, and the next one waits for this answer.
            self.on_confirmed(now, seq, sent, renewal);
            return self.tell_renewer(slip, Why::Lost(reason).into());
        };
        match renewal {
            Renewal::Renewed { remaining, line, .. } => {
                let counts = std::mem::replace(&mut hold.confirmed, true);
                let late = hold.keeping.late(now);
                self.alert_renewal(now, grip);
                self.end_renewal_alert(grip);
                let Some(hold) = self.holds.get_mut(grip.0) else { return };
                (hold.doubted, hold.uncertain, hold.confirming) = (false, false, false);
                (hold.seen, hold.started) = (hold.seen.max(sent), at);
                hold.keeping.confirmed(now, counted_from(now, sent), remaining, counts);
                if self.cohort == Cohort::Holding(grip.0) {
                    self.learn(now, sent, line);
                }
                if counts {
                    self.bustle.events.push_back(Event::Renewed { grip, late });
                }
                self.note_repaired(grip, true);
                self.tell_renewer(slip, Outcome::Done);
            }
            Renewal::Revoked { reason, remaining } => {
                let reason = LossReason::Revoked(reason.into());
                hold.rare_mut().ended = remaining.is_zero();
                self.bustle.events.push_back(Event::RenewalFailed(grip));
                self.lose(now, grip, reason.clone());
                self.tell_renewer(slip, Why::Lost(reason).into());
            }
            Renewal::NotHolder => {
                if self.upgrade_of(grip).is_some_and(|seq| self.confirm_upgrade(seq)) {
                    return self.tell_renewer(slip, Outcome::Done);
                }
                self.bustle.events.push_back(Event::RenewalFailed(grip));
                self.lose(now, grip, LossReason::Gone);
                self.tell_renewer(slip, Why::Lost(LossReason::Gone).into());
            }
        }
    }

    pub(super) fn on_renewal_error(
        &mut self,
        now: Moment,
        hold: (Grip, u64, Moment),
        slip: Option<Slip>,
        error: StoreError,
    ) {
        let (grip, seq, sent) = hold;
        if self.is_confirming(seq) {
            self.on_claim_error(now, seq, error.clone());
        }
        if let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.seq == seq) {
            hold.confirming = false;
            hold.keeping.failed(now, sent);
            self.bustle.events.push_back(Event::RenewalFailed(grip));
        }
        self.note_doubt(now, grip.0);
        self.tell_renewer(slip, Why::Store(error).into());
    }

    fn tell_renewer(&mut self, slip: Option<Slip>, outcome: Outcome) {
        if let Some(slip) = slip {
            self.finish(slip, outcome);
        }
    }

    /// Tells once that a hold has become doubtful. One that nobody has seen yet is nobody's worry.
    fn note_doubt(&mut self, now: Moment, key: HoldKey) {
        let Some(hold) = self.holds.get_mut(key).filter(|hold| !hold.uncertain && hold.is_picked_up()) else {
            return;
        };
        if let HoldState::Uncertain { until } = hold.state(now) {
            hold.uncertain = true;
            self.bustle.events.push_back(Event::Uncertain { grip: Grip(key), until });
        }
    }

    /// The store answered; if it is another life than the one that granted a hold, the hold must be confirmed.
    pub(super) fn note_alive(&mut self, run: RunId) {
        for (key, hold) in self.holds.iter_mut() {
            let known = std::mem::replace(&mut hold.run, Some(run).into()).id();
            if known.is_some_and(|known| known != run) {
                // The new run may have begun with what was before the last answer.
                (hold.doubted, hold.started) = (true, LeaseTime::ZERO);
                let seen = hold.is_live() && hold.is_picked_up();
                if seen && !std::mem::replace(&mut hold.uncertain, true) {
                    self.bustle.events.push_back(Event::Uncertain { grip: Grip(key), until: hold.deadline() });
                }
                self.bustle.todo.push_back(Todo::Renew(Grip(key), None));
            }
        }
    }

    pub(super) fn on_downgraded(&mut self, now: Moment, grip: Grip, seq: u64, slip: Slip, answer: Downgraded) {
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.seq == seq) else {
            return self.fail(slip, Why::Lost(LossReason::Gone));
        };
        if let Some(reason) = hold.loss().cloned() {
            return self.fail(slip, Why::Lost(reason));
        }
        let reason = match answer {
            Downgraded::Shared(_) => {
                hold.mode = Mode::Shared;
                return self.finish(slip, Outcome::Done);
            }
            Downgraded::Revoked { reason } => {
                hold.rare_mut().ended = true;
                LossReason::Revoked(reason.into())
            }
            Downgraded::Withdrawn | Downgraded::NotHolder => LossReason::Gone,
        };
        self.lose(now, grip, reason.clone());
        self.fail(slip, Why::Lost(reason));
    }

    // ---- Checks ----

    pub(super) fn check(&mut self, now: Moment, key: HoldKey, period: Duration) {
        let Some(hold) = self.holds.get_mut(key).filter(|hold| hold.is_picked_up()) else { return };
        let (grip, token) = (Grip(key), hold.token());
        if hold.stands_still(now) {
            return self.lose(now, grip, LossReason::NoProgress);
        }
        if let Some(overdue) = hold.keeping.overdue(now) {
            hold.repairing = true;
            self.bustle.events.push_back(Event::Found { grip, token, finding: Finding::Renewal { overdue } });
        } else if now.since(hold.seen) >= period {
            self.bustle.todo.push_back(Todo::Look(grip));
        }
        self.alert_hold(now, grip);
        self.alert_renewal(now, grip);
        self.attend(now, key);
    }

    pub(super) fn on_look(
        &mut self,
        (now, at): (Moment, LeaseTime),
        (grip, seq, sent): (Grip, u64, Moment),
        standing: Option<&Standing>,
    ) {
        let live = |hold: &Hold| hold.is_live() || zoo::has(Bug::LookRevives);
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.seq == seq && live(hold)) else { return };
        match standing {
            Some(Standing::Granted(grant)) if grant.stamp == hold.stamp => {
                if zoo::has(Bug::LookRevives) {
                    hold.rare_mut().loss = None;
                }
                self.on_sight(now, grip, sent, grant);
            }
            Some(Standing::Revoked { reason }) => {
                let (reason, remaining) = (reason.clone(), Duration::ZERO);
                self.on_renewal((now, at), (grip, seq, sent), None, Renewal::Revoked { reason, remaining });
            }
            Some(Standing::Granted(_) | Standing::Gone) => {
                self.on_renewal((now, at), (grip, seq, sent), None, Renewal::NotHolder);
            }
            Some(Standing::Queued(_)) | None => {}
        }
    }

    /// The record names us. Its lease end must be where the last answer put it.
    fn on_sight(&mut self, now: Moment, grip: Grip, sent: Moment, grant: &Grant) {
        let (drift, response) = (self.settings.drift, self.settings.response);
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        if hold.seen >= sent {
            // Overtaken by a renewal: this is how it stood before.
            return;
        }
        hold.seen = sent;
        hold.doubted = false;
        if zoo::has(Bug::LookMovesDeadline) {
            hold.keeping.confirmed(now, now, grant.remaining, false);
        }
        let (end, believed) = (drift.deadline(sent, grant.remaining), hold.deadline());
        let margin = hold.lease().length().saturating_sub(drift.safe(hold.lease().length())) + JITTER;
        let nearer = believed.since(end) > margin + now.since(sent);
        let further = end.since(believed) > margin + response && hold.keeping.is_settled();
        if !nearer && !further {
            return;
        }
        let (remaining, expected) = (grant.remaining, believed.since(sent));
        hold.keeping.look(sent, grant.remaining);
        hold.repairing = true;
        let (token, finding) = (hold.token(), Finding::LeaseEnd { remaining, expected });
        self.bustle.events.push_back(Event::Found { grip, token, finding });
        self.attend(now, grip.0);
    }

    /// Says what a loss amounts to. Orders are no findings, and a lease that was to end has ended.
    fn note_found(&mut self, grip: Grip, reason: &LossReason) {
        let Some(hold) = self.holds.get(grip.0) else { return };
        let token = hold.token();
        let finding = match reason {
            reason if hold.ended_as_agreed(reason) => return,
            LossReason::Expired | LossReason::Unreachable => Finding::Renewal { overdue: Duration::ZERO },
            LossReason::Gone => Finding::Record,
            LossReason::MaxHold | LossReason::OwnerEnded | LossReason::TaskEnded | LossReason::NoProgress => {
                Finding::Holder { reason: reason.as_str() }
            }
            LossReason::Revoked(_) | LossReason::Shutdown => return,
        };
        self.note_repaired(grip, false);
        self.bustle.events.push_back(Event::Found { grip, token, finding });
    }

    /// A repair has come to its end, if one was under way.
    fn note_repaired(&mut self, grip: Grip, worked: bool) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        if std::mem::take(&mut hold.repairing) {
            let token = hold.token();
            self.bustle.events.push_back(Event::Recovered { grip, strategy: None, worked, token });
        }
    }

    // ---- Alerts ----

    pub(super) fn alert_hold(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let (token, held) = (hold.token(), now.since(hold.since));
        let Some((care, vigil)) = watched(hold) else { return };
        if let Some(limit) = vigil.alert_hold.filter(|limit| held > *limit && !care.alerted.hold) {
            care.alerted.hold = true;
            self.bustle.events.push_back(Event::HeldLong { token, held, limit });
        }
    }

    /// Whether the renewal that is due has come too late, or is about to.
    fn alert_renewal(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let (token, late) = (hold.token(), hold.keeping.lateness(now));
        let Some((care, vigil)) = watched(hold) else { return };
        if let Some(limit) = vigil.alert_renewal.filter(|limit| late > *limit && !care.alerted.renewal) {
            care.alerted.renewal = true;
            self.bustle.events.push_back(Event::RenewedLong { token, late, limit });
        }
    }

    /// The renewal came: the next one is judged anew.
    fn end_renewal_alert(&mut self, grip: Grip) {
        if let Some(care) = self.holds.get_mut(grip.0).and_then(|hold| hold.care_mut()) {
            care.alerted.renewal = false;
        }
    }

    pub(super) fn alert_wait(&mut self, now: Moment, slip: Slip) {
        let Some(ask) = self.bustle.slips.ask(slip) else { return };
        let Some(vigil) = &ask.vigil else { return };
        let waited = now.since(ask.since);
        if let Some(limit) = vigil.alert_wait.filter(|limit| waited > *limit)
            && self.bustle.slips.alert(slip)
        {
            self.bustle.events.push_back(Event::WaitedLong { waited, limit });
        }
    }

    // ---- Loss ----

    /// A hold is gone without being released: tell its guards, and let the line claim anew.
    pub(super) fn lose(&mut self, now: Moment, grip: Grip, reason: LossReason) {
        let Some(hold) = self.holds.get_mut(grip.0).filter(|hold| hold.is_live()) else {
            return self.lose_for_good(grip, reason);
        };
        hold.rare_mut().loss = Some(reason.clone());
        let picked_up = hold.is_picked_up();
        if picked_up {
            self.note_found(grip, &reason);
        }
        self.end_upgrade(now, grip, &reason);
        let Some(hold) = self.holds.get(grip.0) else { return };
        if !picked_up {
            // Nobody has it, and perhaps nobody wants it any more.
            if let Some(slip) = self.unpicked(hold) {
                self.return_to_wait(now, slip, grip);
            }
        } else {
            let lost = Lost { grip, token: hold.token(), id: hold.id, since: hold.since, reason: reason.clone() };
            self.bustle.events.push_back(Event::Lost(Box::new(lost)));
            self.recover(now, grip, &reason);
        }
        if self.cohort == Cohort::Holding(grip.0) && !zoo::has(Bug::LineBelievesInLostHold) {
            self.cohort = Cohort::Idle;
            self.advance(now);
        }
    }

    /// The store says that a hold was revoked and has ended. Nobody has to answer that.
    pub(super) fn lose_revoked(&mut self, now: Moment, grip: Grip, reason: LossReason) {
        if let Some(hold) = self.holds.get_mut(grip.0) {
            hold.rare_mut().ended = true;
        }
        self.lose(now, grip, reason);
    }

    /// A grant that was never picked up came to nothing: its waiter waits again, and the hold is dropped.
    pub(super) fn return_to_wait(&mut self, now: Moment, slip: Slip, grip: Grip) {
        let Some(ask) = self.bustle.slips.ask(slip).cloned() else { return };
        if !self.leave(grip)
            && let Some(hold) = self.holds.remove(grip.0)
            && !hold.left_nothing()
        {
            self.part_hold(now, &hold, Lane::Renewals);
        }
        if self.cohort == Cohort::Holding(grip.0) {
            self.cohort = Cohort::Idle;
        }
        if self.closed {
            return self.fail(slip, Why::Closed);
        }
        self.bustle.arm_wait(ask.until, slip);
        if ask.mode == Mode::Exclusive && !ask.fair && ask.patience == Patience::Queue {
            self.bustle.slips.join(slip);
            self.advance(now);
        } else {
            self.claim_for(now, slip);
        }
    }

    // ---- Recovery ----

    /// A hold was lost, and its guards are told.
    fn recover(&mut self, now: Moment, grip: Grip, reason: &LossReason) {
        let Some(hold) = self.holds.get(grip.0) else { return };
        let (token, quiet) = (hold.token(), reason.is_order() || hold.ended_as_agreed(reason));
        let against_will = match reason {
            LossReason::Revoked(_) => zoo::has(Bug::RegainAfterRevoke),
            LossReason::TaskEnded | LossReason::NoProgress | LossReason::MaxHold => zoo::has(Bug::RegainForTheEnded),
            _ => false,
        };
        match hold.recovery {
            Recovery::Reacquire if against_will => self.regain(now, grip),
            Recovery::Release if !hold.left_nothing() => {
                let key = self.part(now, hold.id, hold.unanswered(), hold.lease().length(), Lane::Renewals);
                self.bustle.partings[key].recovers = (!quiet).then_some((grip, token));
            }
            Recovery::Reacquire if reason.is_lapse() && !quiet && !self.closed => self.regain(now, grip),
            _ if quiet => {}
            _ => self.note_recovered(grip, Recovery::Notify, true, token),
        }
    }

    fn note_recovered(&mut self, grip: Grip, strategy: Recovery, worked: bool, token: Token) {
        self.bustle.events.push_back(Event::Recovered { grip, strategy: Some(strategy), worked, token });
    }

    /// The release of a lost hold has come to its end.
    pub(super) fn note_freed(&mut self, recovers: Option<(Grip, Token)>, worked: bool) {
        if let Some((grip, token)) = recovers {
            self.note_recovered(grip, Recovery::Release, worked, token);
        }
    }

    fn regain(&mut self, now: Moment, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let Some(care) = hold.care_mut() else { return };
        care.regaining = true;
        let (id, unanswered, lease) = (hold.id, hold.unanswered(), hold.lease());
        let taker = Taker::Regain(grip, hold.stamp);
        let wish = Wish { mode: hold.mode, lease, fair: false, patience: Patience::Try };
        let seq = self.insert_claim(now, taker, wish);
        let key = self.part(now, id, unanswered, lease.length(), Lane::Renewals);
        self.bustle.partings[key].again = Some(seq);
    }

    /// Whether this claim takes a lost hold again.
    pub(super) fn is_regain(&self, seq: u64) -> bool {
        matches!(self.bustle.claims.get(&seq).map(|claim| claim.taker), Some(Taker::Regain(..)))
    }

    pub(super) fn on_regain(&mut self, now: Moment, seq: u64, grip: Grip, verdict: Verdict) {
        let grant = match verdict {
            Verdict::Granted(grant) => grant,
            Verdict::Refused(Refusal::Revoked { reason }) => {
                self.forget_claim(seq);
                return self.lose_for_good(grip, LossReason::Revoked(reason.into()));
            }
            _ => {
                self.forget_claim(seq);
                return self.end_regain(grip);
            }
        };
        let Some(claim) = self.bustle.claims.get(&seq) else { return };
        let in_time = self.settings.drift.deadline(claim.asked, grant.remaining) > now;
        if !self.is_regaining(grip) || !in_time {
            self.abandon_granted(now, seq);
            return self.end_regain(grip);
        }
        self.regained(now, seq, grip, grant);
    }

    fn regained(&mut self, now: Moment, seq: u64, grip: Grip, grant: Grant) {
        let Some(claim) = self.forget_claim(seq) else { return };
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let origin = hold.origin();
        (hold.seq, hold.id) = (seq, self.client.holder(seq));
        if !zoo::has(Bug::RegainKeepsToken) {
            (hold.stamp, hold.local) = (grant.stamp, 0);
        }
        let sent = if zoo::has(Bug::RegainFromReply) { now } else { claim.asked };
        hold.keeping = Keeping::after(&hold.keeping, sent, grant.remaining);
        hold.confirmed = true;
        (hold.run, hold.seen, hold.started) = (claim.run, claim.asked, LeaseTime::ZERO);
        (hold.doubted, hold.uncertain) = (false, false);
        if let Some(care) = hold.care_mut() {
            care.regaining = false;
        }
        hold.rare_mut().loss = None;
        hold.note_answered();
        hold.keep_origin(origin);
        let token = hold.token();
        self.note_recovered(grip, Recovery::Reacquire, true, token);
        self.attend(now, grip.0);
    }

    /// What is to be sent once more may no longer be wanted: then only what came of it before is given back.
    pub(super) fn drop_unwanted_regain(&mut self, now: Moment, key: usize) {
        let Some(seq) = self.bustle.partings.get(key).and_then(|parting| parting.again) else { return };
        let Some(Taker::Regain(grip, _)) = self.bustle.claims.get(&seq).map(|claim| claim.taker) else { return };
        if !self.is_regaining(grip) {
            self.bustle.partings[key].again = None;
            self.abandon_granted(now, seq);
        }
    }

    /// The store gave no answer until it no longer mattered, or one that trying again cannot help.
    pub(super) fn on_regain_error(&mut self, seq: u64, grip: Grip) {
        self.forget_claim(seq);
        self.end_regain(grip);
    }

    /// A hold that is being taken again is lost for another reason too: then it stays lost, for this one.
    fn lose_for_good(&mut self, grip: Grip, reason: LossReason) {
        if !reason.is_lapse() && self.is_regaining(grip) {
            if let Some(hold) = self.holds.get_mut(grip.0) {
                hold.rare_mut().loss = Some(reason);
            }
            self.end_regain(grip);
        }
    }

    /// It stays lost. Whatever the store may yet grant is given back.
    pub(super) fn end_regain(&mut self, grip: Grip) {
        let Some(hold) = self.holds.get_mut(grip.0) else { return };
        let token = hold.token();
        if hold.care_mut().is_some_and(|care| std::mem::take(&mut care.regaining)) {
            self.note_recovered(grip, Recovery::Reacquire, false, token);
        }
    }
}
