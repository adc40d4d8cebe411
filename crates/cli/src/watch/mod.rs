//! `bandog watch`: what happens to other processes' locks, one line each, as it is seen.
//!
//! [`Lookout`] looks, [`Ears`] hear of releases in between, [`diff`] finds what changed; `top` uses the same.

mod change;
mod diff;
mod ears;
mod lookout;
mod sight;
mod tell;

use std::time::Duration;

use bandog::AdminError;
use tokio::time::{MissedTickBehavior, interval, sleep};

pub(crate) use self::change::Event;
pub(crate) use self::ears::Ears;
pub(crate) use self::lookout::Lookout;
use self::tell::Tell;
use crate::args::Watch;
use crate::connect::{Label, address, connect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::signals::Interrupts;

pub(crate) async fn watch(args: &Watch, settings: &Settings) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new();
    let mut watching = Watching::begin(args, settings).await?;
    let mut end = Box::pin(async {
        match args.lasting {
            Some(lasting) => sleep(lasting).await,
            None => std::future::pending().await,
        }
    });
    let mut looks = interval(args.looks.every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks.reset();
    loop {
        let step = async {
            tokio::select! {
                _ = looks.tick() => watching.look().await,
                notice = watching.ears.next() => match notice {
                    Some(notice) => {
                        let heard = watching.lookout.heard(notice).await;
                        watching.tell(heard)
                    }
                    None => watching.introduce(),
                },
            }
        };
        tokio::select! {
            biased;
            _ = interrupts.next() => break,
            () = &mut end => break,
            stepped = step => stepped?,
        }
    }
    watching.tell.flush()?;
    Ok(Exit::Fine)
}

struct Watching {
    lookout: Lookout,
    ears: Ears,
    tell: Tell,
    url: String,
    every: Duration,
    limit: u32,
    /// Why the store could not be asked, if it could not.
    trouble: Option<String>,
    crowded: bool,
}

impl Watching {
    async fn begin(args: &Watch, settings: &Settings) -> Result<Self, Failure> {
        let locks = connect(&args.store, settings, Label::Usual("watch")).await?;
        let url = address(&args.store)?;
        let limit = usize::try_from(args.looks.limit).unwrap_or(usize::MAX);
        let mut watching = Self {
            // Before the first look: nothing is missed in between.
            ears: Ears::open(&url).await,
            lookout: Lookout::new(locks, &args.pattern, limit),
            tell: Tell::new(&args.pattern, args.store.json),
            url,
            every: args.looks.every,
            limit: args.looks.limit,
            trouble: None,
            crowded: false,
        };
        watching.lookout.look().await.map_err(|error| Failure::of(error.kind(), &error))?;
        watching.introduce()?;
        watching.say_if_crowded()?;
        Ok(watching)
    }

    /// Says how the store is looked at.
    fn introduce(&mut self) -> Result<(), Failure> {
        let counts = [self.lookout.sights().count(), self.lookout.holders(), self.lookout.waiters()];
        self.tell.watching(&self.ears, &self.url, self.every, counts)
    }

    async fn look(&mut self) -> Result<(), Failure> {
        let seen = self.lookout.look().await;
        let answered = seen.is_ok();
        self.tell(seen)?;
        if answered && self.ears.try_again().await {
            self.introduce()?;
        }
        self.say_if_crowded()
    }

    /// A store that does not answer is waited for: whoever watches wants to see it come back.
    fn tell(&mut self, seen: Result<Vec<Event>, AdminError>) -> Result<(), Failure> {
        match seen {
            Ok(events) => {
                if self.trouble.take().is_some() {
                    self.tell.answered()?;
                }
                events.iter().try_for_each(|event| self.tell.event(event))?;
                self.tell.flush()
            }
            Err(error) if self.trouble.is_none() => {
                self.tell.unanswered(&error)?;
                self.trouble = Some(error.to_string());
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    fn say_if_crowded(&mut self) -> Result<(), Failure> {
        let beyond = self.lookout.beyond;
        if beyond > 0 && !std::mem::replace(&mut self.crowded, true) {
            self.tell.crowded(self.limit, beyond)?;
        }
        self.crowded = beyond > 0;
        Ok(())
    }
}
