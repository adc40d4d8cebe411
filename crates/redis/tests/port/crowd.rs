//! Many at once, beyond what random scripts reach: a thousand readers, long queues that people leave from anywhere, bounded work.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, HolderId};
use bandog_core::lease::Lease;
use bandog_core::ledger::{AUDITED, Applied, LISTED, Limits, Record};
use bandog_core::mode::Mode;
use bandog_core::op::{Body, Claim, Effect, Op, Patience, Release, Renew, Reply, Revoke, Target, Upgrade, Verdict};
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};
use bandog_fake::Fake;
use bandog_redis::{Codec, Keys};

use crate::claims::{client, name, release};

/// A ledger and a fake that must agree on everything.
struct Both {
    fake: Fake,
    codec: Codec,
    record: Record,
    limits: Limits,
    millis: u64,
    clients: Vec<Client>,
}

impl Both {
    fn new() -> Self {
        let limits = Limits::default();
        let codec = Codec::new(Keys::default(), limits.clone());
        let clients = (1..40).map(client).collect();
        Self { fake: Fake::new(), codec, record: Record::default(), limits, millis: 1_000_000, clients }
    }

    fn now(&self) -> Now {
        let (lease, wall) = (LeaseTime::from_millis(self.millis), WallTime::from_micros(self.millis * 1000));
        Now { lease, wall, run: RunId(1) }
    }

    fn apply(&mut self, op: &Op) -> Reply {
        let now = self.now();
        let Applied { reply, mut effects } = self.record.apply(&self.limits, now, op);
        self.fake.set_micros(self.millis * 1000);
        let said = self.codec.reply(op, now.run, self.fake.run(&self.codec.call(&name(1), op))).expect("an answer");
        // An empty message only wakes.
        let published = self.fake.published().into_iter().filter(|(_, payload)| !payload.is_empty());
        let mut pushed: Vec<Effect> = published.map(|(channel, payload)| self.effect(&channel, &payload)).collect();
        for news in [&mut effects, &mut pushed] {
            news.sort_by_cached_key(|effect| (effect.inbox, format!("{:?}", effect.news)));
        }
        assert_eq!(said, reply, "{op:?}");
        assert_eq!(pushed, effects, "{op:?}");
        self.fake.check(&self.codec.keys().key(&name(1))).expect("fields that belong together");
        reply
    }

    /// Renews it as one of many, as a holder does that was last answered at `started`; `None` has changed nothing.
    fn renew_among_many(&mut self, codec: &Codec, claim: &Claim, started: u64) -> Option<()> {
        let renew = Renew { started: LeaseTime::from_millis(started), ..Renew::new(claim.id, claim.lease) };
        self.fake.set_micros(self.millis * 1000);
        let answer = self.fake.run(&codec.renewal(&name(1), &renew));
        let said = codec.renewed_all(claim.lease, RunId(1), answer).expect("an answer").pop().flatten()?;
        let now = self.now();
        assert_eq!(said, self.record.apply(&self.limits, now, &Op::Renew(renew)).reply);
        Some(())
    }

    fn effect(&self, channel: &[u8], payload: &[u8]) -> Effect {
        let inbox = self.codec.keys().inbox(channel).expect("an inbox");
        Effect { inbox, news: self.codec.push(RunId(1), payload).expect("news").news }
    }

    /// How many waiters a listing shows, and how many it counts.
    fn peek(&self) -> (usize, usize) {
        let kept = self.record.peek(self.now());
        let shown = self.codec.peeked(self.fake.run(&self.codec.peek(&name(1)))).expect("a view");
        assert_eq!(shown, kept);
        kept.map_or((0, 0), |view| (view.waiters.len(), view.queue))
    }

    fn settle(&mut self) -> u32 {
        let rounds = (1..200).find(|_| !self.apply(&Op::Tend).more);
        rounds.expect("clean-up comes to an end")
    }

    fn claim(&self, number: usize, mode: Mode, lease: u64) -> Claim {
        let client = &self.clients[number % self.clients.len()];
        Claim {
            id: client.fresh(),
            inbox: client.inbox(),
            who: Arc::clone(client.who()),
            mode,
            lease: Lease::new(Duration::from_millis(lease)).expect("a good lease"),
            window: Duration::from_secs(30),
            fair: number.is_multiple_of(7),
            patience: Patience::Queue,
            not_after: LeaseTime::from_millis(self.millis + 5_000),
            ballot: None,
            after: None,
        }
    }

    fn revoke(&mut self, claim: &Claim, reason: &str, now: bool) {
        let (target, by) = (Target::Holder(claim.id.public()), Arc::clone(self.clients[0].who()));
        self.apply(&Op::Revoke(Revoke { target, reason: reason.to_owned(), by, now }));
    }

    fn join(&mut self, number: usize, mode: Mode, lease: u64) -> HolderId {
        let claim = self.claim(number, mode, lease);
        let id = claim.id;
        self.apply(&Op::Acquire(claim));
        id
    }
}

/// A fixed disorder: each number once.
fn shuffled(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |number| number * 7919 % count)
}

#[test]
fn a_thousand_readers_come_and_go() {
    let mut both = Both::new();
    let readers: Vec<_> =
        shuffled(1_100).map(|number| both.join(number, Mode::Shared, 10_000 + number as u64)).collect();
    both.join(3, Mode::Exclusive, 500);
    for number in shuffled(400) {
        both.apply(&release(readers[number]));
    }
    both.apply(&Op::Inspect);
    both.millis += 10_600;
    assert!(both.apply(&Op::Inspect).more, "there is more to expire than one call may");
    both.settle();
    both.millis -= 3_000;
    both.apply(&Op::Inspect);
    both.millis += 60_000;
    both.settle();
    both.apply(&Op::Inspect);
}

#[test]
fn a_long_queue_is_left_from_everywhere() {
    let mut both = Both::new();
    let mut ids: Vec<_> = (0..500).map(|number| both.join(number, Mode::Exclusive, 10_000)).collect();
    for number in shuffled(499).take(200) {
        both.apply(&release(ids[number]));
    }
    ids.extend((0..50).map(|number| both.join(number, Mode::Shared, 10_000)));
    both.apply(&Op::Inspect);
    assert_eq!(both.peek(), (LISTED, 349));
    for id in ids {
        both.apply(&release(id));
        both.peek();
    }
    both.apply(&Op::Inspect);
}

#[test]
fn a_listing_shows_a_pending_upgrade_among_the_first() {
    let mut both = Both::new();
    let readers = [1, 2].map(|number| both.join(number, Mode::Shared, 10_000));
    for number in 0..=LISTED {
        both.join(number, Mode::Exclusive, 10_000);
        assert_eq!(both.peek(), (LISTED.min(number + 1), number + 1));
    }
    let claim = both.claim(1, Mode::Exclusive, 10_000);
    both.apply(&Op::Upgrade(Upgrade { from: readers[0], claim }));
    assert_eq!(both.peek(), (LISTED, LISTED + 2));
    let Body::Record(Some(view)) = both.apply(&Op::Inspect).body else { panic!("there is a record") };
    assert_eq!((view.waiters.len(), view.queue), (LISTED + 2, LISTED + 2));
}

#[test]
fn a_dead_queue_is_buried_a_piece_at_a_time() {
    let mut both = Both::new();
    for number in 0..500 {
        both.join(number % 38, Mode::Exclusive, 10_000);
    }
    both.millis += 65_000;
    // A client that has nobody in the line: it would revive them.
    both.join(38, Mode::Exclusive, 10_000);
    assert!(both.settle() > 5, "500 waiters, 64 at a time");
    both.apply(&Op::Inspect);
}

#[test]
fn many_revocations_leave_the_last_ones() {
    let mut both = Both::new();
    for number in 0..20 {
        both.millis += 1;
        let claim = both.claim(number, Mode::Exclusive, 10_000);
        both.apply(&Op::Acquire(claim.clone()));
        both.revoke(&claim, &"why? ".repeat(number), number % 3 == 0);
        let Body::Record(Some(view)) = both.apply(&Op::Inspect).body else { panic!("there is a record") };
        assert_eq!(view.revocations.len(), AUDITED.min(number + 1));
        both.apply(&release(claim.id));
    }
    both.millis += u64::try_from(both.limits.audit.as_millis()).unwrap() - 1;
    let Body::Record(Some(view)) = both.apply(&Op::Inspect).body else { panic!("there is a record") };
    assert_eq!(view.revocations.len(), AUDITED);
    both.millis += 1;
    let Body::Record(Some(view)) = both.apply(&Op::Inspect).body else { panic!("just looked at") };
    assert_eq!(view.revocations, []);
}

// The fast paths that know large records must not take one with an audit, whose numbers stand elsewhere.
#[test]
fn no_fast_path_takes_a_record_with_an_audit() {
    for mode in [Mode::Exclusive, Mode::Shared, Mode::permits(1, 500).unwrap()] {
        let mut both = Both::new();
        let first = both.claim(1, mode, 10_000);
        both.apply(&Op::Acquire(first.clone()));
        both.revoke(&first, "asked", false);
        both.join(2, Mode::Exclusive, 10_000);
        both.join(3, mode, 10_000);
        both.join(4, Mode::Exclusive, 10_000);
        both.apply(&release(first.id));
        both.apply(&Op::Inspect);
        both.millis += 40_000;
        both.settle();
        let plain = both.claim(5, Mode::Exclusive, 10_000);
        both.apply(&Op::Acquire(plain.clone()));
        both.apply(&Op::Renew(Renew::new(plain.id, plain.lease)));
        both.join(6, Mode::Exclusive, 10_000);
        both.apply(&release(plain.id));
        let Body::Record(Some(view)) = both.apply(&Op::Inspect).body else { panic!("there is a record") };
        assert_eq!((view.holders.len(), view.revocations.len()), (1, 1));
    }
}

#[test]
fn claim_that_queues_again_finds_its_place_after_another_left() {
    let mut both = Both::new();
    let [first, second, gone] = [1, 2, 3].map(|number| both.join(number, Mode::Exclusive, 10_000));
    both.apply(&release(gone));
    let again = both.claim(1, Mode::Exclusive, 10_000);
    let back = again.id;
    both.apply(&Op::Release(Release { id: first, not_after: None, again: Some(Box::new(again)) }));
    both.join(3, Mode::Exclusive, 10_000);
    both.apply(&release(second));
    both.apply(&release(back));
    let Body::Record(Some(view)) = both.apply(&Op::Inspect).body else { panic!("there is a record") };
    assert_eq!((view.holders.len(), view.waiters.len()), (1, 0));
}

#[test]
fn marks_that_were_over_stay_over_when_the_clock_steps_back() {
    let mut both = Both::new();
    let claims: Vec<_> = (0..3).map(|number| both.claim(number, Mode::Shared, 1_000)).collect();
    // Made in an order in which the second and the third cannot both be first.
    for (claim, life) in claims.iter().zip([100, 50, 60]) {
        let not_after = Some(LeaseTime::from_millis(both.millis + life));
        both.apply(&Op::Release(Release { id: claim.id, not_after, again: None }));
    }
    both.millis += 70;
    both.apply(&Op::Tend);
    both.millis -= 15;
    let granted = |reply: Reply| matches!(reply.body, Body::Verdict(Verdict::Granted(_)));
    let verdicts: Vec<bool> = claims.into_iter().map(|claim| granted(both.apply(&Op::Acquire(claim)))).collect();
    assert_eq!(verdicts, [false, true, true]);
}

/// A hold of 10 s that was renewed among many: only its key knows its end.
fn renewed_among_many() -> (Both, Claim, u64) {
    let mut both = Both::new();
    let claim = both.claim(1, Mode::Exclusive, 10_000);
    both.apply(&Op::Acquire(claim.clone()));
    both.millis += 5_000;
    let (codec, began) = (both.codec.clone(), both.millis);
    assert_eq!(both.renew_among_many(&codec, &claim, 0), Some(()));
    both.millis += 5_000;
    assert_eq!(both.renew_among_many(&codec, &claim, began), Some(()));
    let last = both.millis;
    (both, claim, last)
}

#[test]
fn among_many_a_clock_that_stepped_back_brings_no_lease_back() {
    let (mut both, claim, last) = renewed_among_many();
    let codec = both.codec.clone();
    both.millis = last - 3_000;
    assert_eq!(both.renew_among_many(&codec, &claim, last), None, "the holder heard of a later time");
    both.apply(&Op::Renew(Renew::new(claim.id, claim.lease)));
    both.millis += 1_000;
    assert_eq!(both.renew_among_many(&codec, &claim, last), Some(()), "its end is in the record");
    both.millis += 10_000;
    assert_eq!(both.renew_among_many(&codec, &claim, last), None, "and has passed, though the holder was told of more");
    both.apply(&Op::Inspect);
}

#[test]
fn among_many_the_end_of_a_key_is_moved_by_one_retention_alone() {
    let (mut both, claim, last) = renewed_among_many();
    let other = Limits { retention: Duration::from_secs(2), ..Limits::default() };
    both.millis += 1_000;
    assert_eq!(both.renew_among_many(&Codec::new(Keys::default(), other), &claim, last), None);
    both.apply(&Op::Inspect);
}
