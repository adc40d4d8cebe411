//! Two looks at one lock, and what happened in between. Pure.
//!
//! What came and went between the looks is not seen, unless a notice told of it. Of a long queue only the first waiters are
//! seen: who newly stands among them may have waited long, and is not told to have come.

use std::time::Duration;

use bandog::PublicId;
use bandog::op::{HolderView, RecordView, WaiterView};

use super::change::{Change, Party};
use super::sight::Sight;

/// What lies between two looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between<'a> {
    /// The first of them; nothing if the lock was not in use.
    pub(crate) earlier: Option<&'a Sight>,
    /// The second; nothing if the store has forgotten the lock.
    pub(crate) later: Option<&'a Sight>,
    /// How much later it was.
    pub(crate) elapsed: Duration,
    /// Who told in a notice that it has released.
    pub(crate) released: Option<PublicId>,
    /// The wall clock, in microseconds.
    pub(crate) now: u64,
}

impl Between<'_> {
    /// What happened, in the order in which it is best read.
    pub(crate) fn changes(self) -> Vec<Change> {
        let mut changes: Vec<Change> = self.asked().collect();
        let (mut gone, mut new) = (self.gone(), self.arrived());
        if let ([(left, Change::Released { asked: None, .. })], [came]) = (&gone[..], &new[..])
            && let Some(handed) = self.handed(left, came)
        {
            changes.push(handed);
            (gone, new) = (Vec::new(), Vec::new());
        }
        changes.extend(gone.into_iter().map(|(_, change)| change));
        changes.extend(self.unseen());
        changes.extend(self.left());
        changes.extend(new.iter().map(|holder| self.held(holder)));
        changes.extend(self.joined());
        changes
    }

    fn holders(side: Option<&Sight>) -> &[HolderView] {
        side.map_or(&[], |sight| &sight.record.holders)
    }

    fn waiters(side: Option<&Sight>) -> &[WaiterView] {
        side.map_or(&[], |sight| &sight.record.waiters)
    }

    fn waiter_before(&self, id: PublicId) -> Option<&WaiterView> {
        Self::waiters(self.earlier).iter().find(|waiter| waiter.id == id)
    }

    fn asked(&self) -> impl Iterator<Item = Change> {
        let before = |id| Self::holders(self.earlier).iter().find(|holder| holder.id == id);
        Self::holders(self.later).iter().filter_map(move |holder| {
            let reason = holder.revoked.clone()?;
            let known = before(holder.id).is_some_and(|before| before.revoked.as_ref() == Some(&reason));
            (!known).then(|| Change::Asked { by: party(holder), reason })
        })
    }

    /// Holders that are there no more, and how they went.
    fn gone(&self) -> Vec<(HolderView, Change)> {
        let stays = |id| Self::holders(self.later).iter().any(|holder| holder.id == id);
        let gone = Self::holders(self.earlier).iter().filter(|holder| !stays(holder.id));
        gone.map(|holder| (holder.clone(), self.end_of(holder))).collect()
    }

    fn end_of(&self, holder: &HolderView) -> Change {
        let (by, held) = (party(holder), since(holder.since.micros(), self.now));
        let revocation = self.later.and_then(|later| revocation(&later.record, holder.id));
        if let Some((reason, true)) = revocation {
            return Change::Ended { by, held, reason };
        }
        let told = self.released == Some(holder.id);
        if !told && self.earlier.is_some_and(|earlier| earlier.ran_out(holder, self.elapsed)) {
            return Change::Expired { by, held };
        }
        let asked = holder.revoked.clone().or_else(|| revocation.map(|(reason, _)| reason));
        Change::Released { by, held: Some(held), asked }
    }

    /// A hold of which only a notice tells.
    fn unseen(&self) -> Option<Change> {
        let id = self.released.filter(|id| !Self::holders(self.earlier).iter().any(|holder| holder.id == *id))?;
        let who = self.waiter_before(id).map(|waiter| waiter.who.clone());
        Some(Change::Released { by: Party { id, who }, held: None, asked: None })
    }

    fn arrived(&self) -> Vec<HolderView> {
        let known = |id| Self::holders(self.earlier).iter().any(|holder| holder.id == id);
        Self::holders(self.later).iter().filter(|holder| !known(holder.id)).cloned().collect()
    }

    /// From one to the next, if that one was seen to wait.
    fn handed(&self, from: &HolderView, to: &HolderView) -> Option<Change> {
        let waiter = self.waiter_before(to.id)?;
        Some(Change::Handed {
            from: party(from),
            held: since(from.since.micros(), to.since.micros()),
            by: party(to),
            waited: since(waiter.since.micros(), to.since.micros()),
            token: to.stamp.token(0),
        })
    }

    fn held(&self, holder: &HolderView) -> Change {
        let waited = self.waiter_before(holder.id).map(|one| since(one.since.micros(), holder.since.micros()));
        Change::Held { by: party(holder), waited, token: holder.stamp.token(0) }
    }

    fn queue(side: Option<&Sight>) -> usize {
        side.map_or(0, |sight| sight.record.queue)
    }

    /// Waiters that neither wait nor hold any more, as far as that is certain: in the order of the queue.
    fn left(&self) -> impl Iterator<Item = Change> + use<'_> {
        let (holders, waiters) = (Self::holders(self.later), Self::waiters(self.later));
        let here = move |id| holders.iter().any(|one| one.id == id) || waiters.iter().any(|one| one.id == id);
        let (now, told) = (self.now, self.released);
        let (sure, queue) = (self.places_seen(), Self::queue(self.later));
        let gone = Self::waiters(self.earlier).iter().take(sure).enumerate();
        let gone = gone.filter(move |(_, one)| !here(one.id) && told != Some(one.id));
        gone.map(move |(at, one)| {
            let (by, waited) = (waiting(one), since(one.since.micros(), now));
            match self.may_have_held(at) {
                true => Change::Gone { by, waited, waiters: queue },
                false => Change::Left { by, waited, waiters: queue },
            }
        })
    }

    /// Whether the waiter in this place may have been granted the lock and released it. Nobody is granted it before those who stood in
    /// front, and every grant has a higher stamp than the one before.
    fn may_have_held(&self, at: usize) -> bool {
        let (Some(earlier), Some(later)) = (self.earlier, self.later) else { return true };
        let last = later.record.last;
        let is_last =
            |one: &WaiterView| later.record.holders.iter().any(|holder| holder.id == one.id && holder.stamp == last);
        let waits = |one: &WaiterView| later.record.waiters.iter().any(|waiter| waiter.id == one.id);
        last != earlier.record.last && !earlier.record.waiters[..at].iter().any(|one| waits(one) || is_last(one))
    }

    /// How many of the first places of the earlier look the later one shows, if those who had them still wait.
    fn places_seen(&self) -> usize {
        match self.later {
            Some(later) if !later.is_whole() => {
                let shown = &later.record.waiters;
                // Nobody comes in before another, but for one upgrade at the front.
                let upgrade = shown.first().is_some_and(|first| self.waiter_before(first.id).is_none());
                shown.len().saturating_sub(usize::from(upgrade))
            }
            _ => usize::MAX,
        }
    }

    fn joined(&self) -> impl Iterator<Item = Change> {
        let (whole, queue) = (self.earlier.is_none_or(Sight::is_whole), Self::queue(self.later));
        let new = Self::waiters(self.later).iter().filter(move |one| whole && self.waiter_before(one.id).is_none());
        new.map(move |one| Change::Waits { by: waiting(one), waiters: queue })
    }
}

/// Why a holder was revoked and whether that ended its hold at once, if the record remembers.
fn revocation(record: &RecordView, id: PublicId) -> Option<(String, bool)> {
    let found = record.revocations.iter().rev().find(|revocation| revocation.holder == id)?;
    Some((found.reason.clone(), found.now))
}

fn since(from: u64, to: u64) -> Duration {
    Duration::from_micros(to.saturating_sub(from))
}

pub(crate) fn party(holder: &HolderView) -> Party {
    Party { id: holder.id, who: Some(holder.who.clone()) }
}

fn waiting(waiter: &WaiterView) -> Party {
    Party { id: waiter.id, who: Some(waiter.who.clone()) }
}

#[cfg(test)]
mod tests;
