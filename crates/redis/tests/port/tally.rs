//! Counts what was answered, so that a differential that never met a case says so.

use std::collections::BTreeMap;
use std::time::Duration;

use bandog_core::op::{Body, Downgraded, Effect, News, Parted, Refusal, Renewal, Reply, Revoked, Standing, Verdict};
use bandog_core::token::Stamp;

/// Every sort of answer and news there is.
const SORTS: [&str; 41] = [
    "granted",
    "queued",
    "busy",
    "busy, nobody named",
    "done",
    "late",
    "lease too long",
    "wrong kind",
    "queue full",
    "upgrade of no hold",
    "of a revoked hold",
    "upgrade pending",
    "overtaken",
    "overtaken, no record",
    "renewed",
    "renewal revoked",
    "renewal of a hold that was revoked",
    "renewal of no hold",
    "released hold",
    "released place",
    "released too late, revoked",
    "released nothing",
    "released and claimed again",
    "standing queued",
    "standing granted",
    "standing revoked",
    "standing gone",
    "downgraded",
    "upgrade withdrawn",
    "downgrade of a hold that was revoked",
    "downgrade of no hold",
    "revocation asked",
    "revoked at once",
    "revocation of nobody",
    "record",
    "no record",
    "tended",
    "more",
    "news of a grant",
    "news of a waiter",
    "news of a revocation",
];

#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<&'static str, u64>,
    pub(crate) operations: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, reply: &Reply, effects: &[Effect]) {
        self.operations += 1;
        if reply.more {
            self.count("more");
        }
        self.body(&reply.body);
        for effect in effects {
            self.count(match effect.news {
                News::Granted { .. } => "news of a grant",
                News::Waiting { .. } => "news of a waiter",
                News::Revoked { .. } => "news of a revocation",
            });
        }
    }

    fn count(&mut self, sort: &'static str) {
        assert!(SORTS.contains(&sort), "{sort} is not listed");
        *self.counts.entry(sort).or_default() += 1;
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::Verdict(verdict) => self.verdict(verdict),
            Body::Renewal(Renewal::Renewed { .. }) => self.count("renewed"),
            Body::Renewal(Renewal::Revoked { remaining: Duration::ZERO, .. }) => {
                self.count("renewal of a hold that was revoked");
            }
            Body::Renewal(Renewal::Revoked { .. }) => self.count("renewal revoked"),
            Body::Renewal(Renewal::NotHolder) => self.count("renewal of no hold"),
            Body::Standings(standings) => standings.iter().for_each(|standing| self.standing(standing)),
            Body::Release(release) => {
                self.count(match &release.parted {
                    Parted::Hold => "released hold",
                    Parted::Place => "released place",
                    Parted::Revoked { .. } => "released too late, revoked",
                    Parted::Nothing => "released nothing",
                });
                if let Some(verdict) = &release.again {
                    self.count("released and claimed again");
                    self.verdict(verdict);
                }
            }
            Body::Downgraded(Downgraded::Shared(_)) => self.count("downgraded"),
            Body::Downgraded(Downgraded::Withdrawn) => self.count("upgrade withdrawn"),
            Body::Downgraded(Downgraded::Revoked { .. }) => self.count("downgrade of a hold that was revoked"),
            Body::Downgraded(Downgraded::NotHolder) => self.count("downgrade of no hold"),
            Body::Revoked(Revoked::Asked { .. }) => self.count("revocation asked"),
            Body::Revoked(Revoked::Ended) => self.count("revoked at once"),
            Body::Revoked(Revoked::NoSuchHolder) => self.count("revocation of nobody"),
            Body::Record(Some(_)) => self.count("record"),
            Body::Record(None) => self.count("no record"),
            Body::Tended => self.count("tended"),
        }
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.count(match verdict {
            Verdict::Granted(_) => "granted",
            Verdict::Queued(_) => "queued",
            Verdict::Busy(Some(_)) => "busy",
            Verdict::Busy(None) => "busy, nobody named",
            Verdict::Refused(refusal) => match refusal {
                Refusal::Done => "done",
                Refusal::Late { .. } => "late",
                Refusal::LeaseTooLong { .. } => "lease too long",
                Refusal::WrongKind { .. } => "wrong kind",
                Refusal::QueueFull { .. } => "queue full",
                Refusal::NotHolder => "upgrade of no hold",
                Refusal::Revoked { .. } => "of a revoked hold",
                Refusal::UpgradePending => "upgrade pending",
                Refusal::Overtaken { last: Stamp::ZERO } => "overtaken, no record",
                Refusal::Overtaken { .. } => "overtaken",
                _ => "a refusal that is not listed",
            },
        });
    }

    fn standing(&mut self, standing: &Standing) {
        self.count(match standing {
            Standing::Queued(_) => "standing queued",
            Standing::Granted(_) => "standing granted",
            Standing::Revoked { .. } => "standing revoked",
            Standing::Gone => "standing gone",
        });
    }

    /// Prints all counts and fails when something never happened.
    pub(crate) fn finish(&self, title: &str) {
        println!("{title}: {} operations", self.operations);
        for sort in SORTS {
            println!("  {:>8}  {sort}", self.counts.get(sort).copied().unwrap_or_default());
        }
        let missing: Vec<_> = SORTS.iter().filter(|sort| !self.counts.contains_key(**sort)).collect();
        assert!(missing.is_empty(), "never met: {missing:?}");
    }
}
