//! What must hold after every event.

use bandog_core::mode::Mode;
use bandog_core::token::Token;

use crate::client::{Client, News};

/// The highest tokens that anybody was told.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    any: Option<Token>,
    exclusive: Option<Token>,
}

impl Tokens {
    /// A hold was told: its token is above those of all conflicting holds before it.
    pub(crate) fn learn(&mut self, news: News) -> Option<String> {
        let below = match news.mode {
            Mode::Exclusive => self.any,
            Mode::Shared => self.exclusive,
            Mode::Permits { .. } => None,
        };
        self.any = self.any.max(Some(news.token));
        if news.mode == Mode::Exclusive {
            self.exclusive = self.exclusive.max(Some(news.token));
        }
        let stale = below.filter(|below| *below >= news.token);
        stale.map(|below| format!("{:?} got {:?} after {below:?}", news.mode, news.token))
    }
}

/// No two beliefs conflict.
pub(crate) fn conflict(now: u64, clients: &[Client]) -> Option<String> {
    let held = clients.iter().enumerate().flat_map(|(n, client)| client.beliefs(now).into_iter().map(move |g| (n, g)));
    let held: Vec<_> = held.collect();
    let permits = |mode: Mode| match mode {
        Mode::Permits { count, .. } => count.get(),
        Mode::Exclusive | Mode::Shared => 0,
    };
    let exclusive = held.iter().any(|(_, guard)| guard.mode == Mode::Exclusive) && held.len() > 1;
    let sum: u32 = held.iter().map(|(_, guard)| permits(guard.mode)).sum();
    (exclusive || sum > crate::world::CAPACITY).then(|| format!("all of these believe they hold: {held:?}"))
}
