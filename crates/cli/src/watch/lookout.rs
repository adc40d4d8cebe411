//! Looks at the locks of a store again and again, and says what changed. `watch` prints that, `top` draws it.
//!
//! Memory is bounded by the number of locks that are looked at: those that were seen first stay, others come in as there is room.

use std::collections::BTreeMap;
use std::time::Duration;

use bandog::op::RecordView;
use bandog::{AdminError, Clock, LockInfo, LockName, Locks, Moment, Pattern, PublicId};
use bandog_redis::Notice;

use super::change::Event;
use super::diff::Between;
use super::sight::Sight;
use crate::entry::{PAUSES, wall_micros};

/// Rows of one page.
const PAGE: usize = 256;
/// Of the locks that are in use no more, so many are asked at one look how they ended.
const ASKED: usize = 256;
/// So many waiters are a crowd: a look at such a lock alone costs more than one at all of them, and notices of it may come fast.
const CROWD: usize = 32;

/// Every lock of a pattern, as it was at the last look.
#[derive(Debug)]
pub(crate) struct Lookout {
    pub(crate) locks: Locks,
    pattern: String,
    limit: usize,
    clock: Clock,
    sights: BTreeMap<LockName, Sight>,
    /// Locks for which there was no room.
    pub(crate) beyond: usize,
    /// What stands in the place of locks and could not be read.
    pub(crate) unread: usize,
    looked: bool,
    /// Until then a notice of a lock with a crowd is left to the next look at all of them.
    rest: Moment,
}

impl Lookout {
    pub(crate) fn new(locks: Locks, pattern: &str, limit: usize) -> Self {
        let (pattern, clock) = (pattern.to_owned(), Clock::system());
        let rest = clock.now();
        Self { locks, pattern, limit, clock, sights: BTreeMap::new(), beyond: 0, unread: 0, looked: false, rest }
    }

    /// Looks at other locks from the next look on, which then tells nothing.
    pub(crate) fn turn_to(&mut self, pattern: &str) {
        pattern.clone_into(&mut self.pattern);
        self.sights.clear();
        (self.beyond, self.looked) = (0, false);
    }

    pub(crate) fn sights(&self) -> impl Iterator<Item = (&LockName, &Sight)> + Clone {
        self.sights.iter()
    }

    pub(crate) fn holders(&self) -> usize {
        self.sights.values().map(|sight| sight.record.holders.len()).sum()
    }

    pub(crate) fn waiters(&self) -> usize {
        self.sights.values().map(|sight| sight.record.queue).sum()
    }

    /// Looks at every lock and says what has changed since the last time: nothing at the first.
    ///
    /// Dropped half-way, it was not there.
    pub(crate) async fn look(&mut self) -> Result<Vec<Event>, AdminError> {
        // Without room, a lock that is new here may be old: what happened to it is not known.
        let tells = |known: bool, crowded: bool| known || !crowded;
        let crowded = self.beyond > 0;
        let (mut found, beyond, unread) = self.scan().await?;
        self.ask_for_the_gone(&mut found).await?;
        let mut events = Vec::new();
        for (name, record) in found {
            let known = self.sights.contains_key(&name);
            let changes = self.note(&name, record, None);
            if self.looked && tells(known, crowded) {
                events.extend(changes);
            }
        }
        (self.looked, self.beyond, self.unread) = (true, beyond, unread);
        Ok(events)
    }

    /// Looks at the one lock that a notice is about, if it is one of ours.
    pub(crate) async fn heard(&mut self, notice: Notice) -> Result<Vec<Event>, AdminError> {
        let ours = Pattern::new(&*self.pattern).is_ok_and(|pattern| pattern.matches(notice.name.as_str()));
        let asked = self.clock.now();
        if !ours || !self.looked || (asked < self.rest && self.is_crowded(&notice.name)) {
            return Ok(Vec::new());
        }
        let record = self.locks.inspect(&notice.name).await?.map(|info| info.record);
        if record.as_ref().is_some_and(|record| record.queue > CROWD) {
            let now = self.clock.now();
            self.rest = now + now.since(asked) * PAUSES;
        }
        let room = self.sights.len() < self.limit || self.sights.contains_key(&notice.name);
        let events = self.note(&notice.name, record, notice.holder);
        if !room {
            self.sights.remove(&notice.name);
        }
        Ok(events)
    }

    fn is_crowded(&self, name: &LockName) -> bool {
        self.sights.get(name).is_some_and(|sight| sight.record.queue > CROWD)
    }

    /// Every lock in use for which there is room, the number of the others, and of those that cannot be read.
    async fn scan(&self) -> Result<(BTreeMap<LockName, Option<RecordView>>, usize, usize), AdminError> {
        let (mut found, mut new, mut beyond, mut unread) = (BTreeMap::new(), 0, 0, 0);
        let mut pages = self.locks.scan(&self.pattern).limit(PAGE);
        while let Some(page) = pages.next().await? {
            unread += pages.unread().len();
            for LockInfo { name, record, .. } in page {
                let known = self.sights.contains_key(&name) || found.contains_key(&name);
                if !known && self.sights.len() + new >= self.limit {
                    beyond += 1;
                    continue;
                }
                new += usize::from(!known);
                found.insert(name, Some(record));
            }
        }
        Ok((found, beyond, unread))
    }

    /// What is in use no more is not listed: the store may still know how it ended.
    async fn ask_for_the_gone(&self, found: &mut BTreeMap<LockName, Option<RecordView>>) -> Result<(), AdminError> {
        let gone: Vec<LockName> = self.sights.keys().filter(|name| !found.contains_key(*name)).cloned().collect();
        for (at, name) in gone.into_iter().enumerate() {
            let record = if at < ASKED { self.locks.inspect(&name).await?.map(|info| info.record) } else { None };
            found.insert(name, record);
        }
        Ok(())
    }

    /// Remembers a lock as it is now, if anybody uses it, and says what has changed.
    fn note(&mut self, name: &LockName, record: Option<RecordView>, released: Option<PublicId>) -> Vec<Event> {
        let (seen, at) = (self.clock.now(), wall_micros());
        let earlier = self.sights.remove(name);
        let later = record.map(|record| Sight::new(record, seen, earlier.as_ref()));
        let elapsed = earlier.as_ref().map_or(Duration::ZERO, |earlier| seen.since(earlier.seen));
        let between = Between { earlier: earlier.as_ref(), later: later.as_ref(), elapsed, released, now: at };
        let changes = between.changes();
        if let Some(sight) = later.filter(Sight::is_in_use) {
            self.sights.insert(name.clone(), sight);
        }
        changes.into_iter().map(|change| Event { at, lock: name.clone(), change }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lookout(pattern: &str, limit: usize) -> (Locks, Lookout) {
        let locks = Locks::connect("memory:").await.unwrap();
        (locks.clone(), Lookout::new(locks, pattern, limit))
    }

    async fn seen(lookout: &mut Lookout) -> Vec<String> {
        let events = lookout.look().await.unwrap();
        events.iter().map(|event| format!("{} {}", event.lock, event.change.word())).collect()
    }

    fn notice(name: &str) -> Notice {
        Notice::new(LockName::new(name).unwrap(), Some(PublicId::from_bits(1)))
    }

    #[tokio::test]
    async fn the_first_look_tells_nothing_and_the_next_what_changed() {
        let (locks, mut lookout) = lookout("a*", 10).await;
        let a = locks.mutex("a").acquire().await.unwrap();
        let _b = locks.mutex("b").acquire().await.unwrap();
        assert_eq!(seen(&mut lookout).await, Vec::<String>::new());
        let _a2 = locks.mutex("a2").acquire().await.unwrap();
        a.release().await.unwrap();
        assert_eq!(seen(&mut lookout).await, ["a released", "a2 held"]);
        assert_eq!((lookout.sights().count(), lookout.holders(), lookout.waiters()), (1, 1, 0));
        lookout.turn_to("*");
        assert_eq!(seen(&mut lookout).await, Vec::<String>::new(), "it looks at others for the first time");
        assert_eq!(lookout.sights().count(), 2);
    }

    #[tokio::test]
    async fn what_had_no_room_is_not_news_when_it_gets_some() {
        let (locks, mut lookout) = lookout("*", 1).await;
        let a = locks.mutex("a").acquire().await.unwrap();
        let _b = locks.mutex("b").acquire().await.unwrap();
        seen(&mut lookout).await;
        assert_eq!((lookout.sights().count(), lookout.beyond), (1, 1));
        a.release().await.unwrap();
        assert_eq!(seen(&mut lookout).await, ["a released"]);
        assert_eq!(seen(&mut lookout).await, Vec::<String>::new(), "b has long been held");
        assert_eq!((lookout.sights().count(), lookout.beyond), (1, 0));
    }

    #[tokio::test]
    async fn a_notice_is_about_one_lock_of_the_pattern() {
        let (locks, mut lookout) = lookout("a*", 1).await;
        assert!(lookout.heard(notice("a")).await.unwrap().is_empty(), "nothing was looked at yet");
        let _a = locks.mutex("a").acquire().await.unwrap();
        let _a2 = locks.mutex("a2").acquire().await.unwrap();
        seen(&mut lookout).await;
        assert!(lookout.heard(notice("b")).await.unwrap().is_empty());
        let told = lookout.heard(notice("a2")).await.unwrap();
        assert_eq!(told.iter().map(|event| event.change.word()).collect::<Vec<_>>(), ["released", "held"]);
        assert_eq!(lookout.sights().count(), 1, "there is no room for it");
    }

    #[tokio::test]
    async fn notices_of_a_crowded_lock_leave_the_store_time_for_others() {
        let (locks, mut lookout) = lookout("a*", 10).await;
        let held = [locks.mutex("a").acquire().await.unwrap(), locks.mutex("a2").acquire().await.unwrap()];
        let line: Vec<_> = (0..=CROWD).map(|_| tokio::spawn(locks.mutex("a").fair().acquire())).collect();
        while locks.inspect("a").await.unwrap().unwrap().record.queue < line.len() {
            tokio::task::yield_now().await;
        }
        seen(&mut lookout).await;
        let before = lookout.rest;
        assert!(!lookout.heard(notice("a")).await.unwrap().is_empty());
        assert!(lookout.rest > before, "what that took is made up for");
        lookout.rest = lookout.clock.now() + Duration::from_secs(3600);
        assert!(lookout.heard(notice("a")).await.unwrap().is_empty(), "it waits for the next look at all");
        assert!(!lookout.heard(notice("a2")).await.unwrap().is_empty(), "nobody waits for this one");
        drop((held, line));
    }
}
