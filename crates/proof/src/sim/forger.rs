//! Whoever may publish says what the store has not said: grants and revocations by numbers that it guesses, and again what it has heard.
//!
//! What it cannot know is the number of a claim before its grant is pushed.

use bandog_core::name::LockName;
use bandog_core::op::{Line, News};
use bandog_core::store::Push;
use bandog_core::token::Stamp;

use crate::rng::Rng;

use super::{Event, Who, World};

/// So many messages at a time.
const STRIKES: u64 = 8;

impl World {
    /// What is published can be heard by others.
    pub(super) fn overhear(&mut self, who: Who, news: &News) {
        self.overheard.push((who.client, news.clone()));
    }

    pub(super) fn forge(&mut self, client: usize) {
        let mut rng = self.rng(self.messages ^ 0xf03e);
        self.messages += 1;
        let who = Who { client, life: self.processes[client].life };
        let Ok(name) = LockName::new("lock") else { return };
        for _ in 0..STRIKES {
            let news = self.forged(&mut rng, client);
            self.say(|| format!("forged for p{client}: {news:?}"));
            let push = Push { name: name.clone(), run: self.server.run(), news };
            self.schedule(self.now, Event::Forged(who, Box::new(push)));
        }
    }

    fn forged(&self, rng: &mut Rng, client: usize) -> News {
        let known: Vec<&News> =
            self.overheard.iter().filter(|(whose, _)| *whose == client).map(|(_, news)| news).collect();
        let heard = if known.is_empty() { None } else { Some(rng.pick(&known)) };
        let number = if rng.chance(800) { rng.below(12) } else { rng.next() };
        let reason = || "forged".to_owned();
        match (rng.below(5), heard) {
            (0, _) => News::Waiting { fair: rng.chance(500) },
            (1, _) => News::Revoked { number, reason: reason() },
            (2, Some(heard)) => heard.clone(),
            (3, Some(News::Granted { number, .. })) => News::Revoked { number: *number, reason: reason() },
            _ => {
                let stamp =
                    Stamp::from_micros(self.server.lease_time(self.now).millis() * 1_000 + rng.below(1_000_000_000));
                News::Granted { number, stamp, line: Line::default() }
            }
        }
    }
}
