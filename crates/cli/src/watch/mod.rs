//! `bandog watch`: what happens to other processes' locks, one line each, as it is seen.
//!
//! [`Eyes`] see: a [`Lookout`] looks, [`Ears`] hear of releases in between, [`diff`] finds what changed; `top` uses the same.

mod change;
mod diff;
mod ears;
mod eyes;
mod lookout;
#[cfg(test)]
pub(crate) mod sample;
mod sight;
mod tell;

use std::time::Duration;

pub(crate) use self::change::{Change, Event, Party};
pub(crate) use self::diff::party;
pub(crate) use self::ears::Ears;
pub(crate) use self::eyes::{Eyes, Report};
pub(crate) use self::lookout::Lookout;
pub(crate) use self::sight::Sight;
use self::tell::Tell;
pub(crate) use self::tell::{clock, found};
use crate::args::{Looks, Watch};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::settings::Settings;
use crate::signals::Interrupts;

pub(crate) async fn watch(args: &Watch, settings: &Settings) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new();
    let pattern = names::pattern(&args.pattern);
    let mut eyes = Eyes::open(&args.store, settings, "watch", (&pattern, &args.looks)).await?;
    let tell = Tell::new(&pattern, args.store.json);
    let mut watching = Watching { tell, looks: args.looks.clone(), troubled: false, crowded: false, unread: 0 };
    watching.introduce(&eyes)?;
    watching.say_if_crowded(&eyes)?;
    let mut end = Box::pin(end(args.looks.lasting));
    loop {
        tokio::select! {
            biased;
            _ = interrupts.next() => break,
            () = &mut end => break,
            report = eyes.next() => watching.tell(&eyes, report)?,
        }
    }
    watching.tell.flush()?;
    Ok(Exit::Fine)
}

/// After this long, if ever.
pub(crate) async fn end(lasting: Option<Duration>) {
    match lasting {
        Some(lasting) => tokio::time::sleep(lasting).await,
        None => std::future::pending().await,
    }
}

struct Watching {
    tell: Tell,
    looks: Looks,
    /// Whether the store did not answer the last time.
    troubled: bool,
    crowded: bool,
    /// How many could not be read, as far as it was told.
    unread: usize,
}

impl Watching {
    /// Says how the store is looked at.
    fn introduce(&mut self, eyes: &Eyes) -> Result<(), Failure> {
        let lookout = &eyes.lookout;
        let counts = [lookout.sights().count(), lookout.holders(), lookout.waiters()];
        self.tell.watching(&eyes.ears, &eyes.url, self.looks.every, counts)
    }

    /// A store that does not answer is waited for: whoever watches wants to see it come back.
    fn tell(&mut self, eyes: &Eyes, report: Report) -> Result<(), Failure> {
        match report {
            Report::Looked(events) | Report::Heard(events) => {
                if std::mem::take(&mut self.troubled) {
                    self.tell.answered()?;
                }
                events.iter().try_for_each(|event| self.tell.event(event))?;
                self.tell.flush()?;
                self.say_if_crowded(eyes)
            }
            Report::Unanswered(error) if !std::mem::replace(&mut self.troubled, true) => self.tell.unanswered(&error),
            Report::Unanswered(_) => Ok(()),
            Report::Hearing => self.introduce(eyes),
        }
    }

    fn say_if_crowded(&mut self, eyes: &Eyes) -> Result<(), Failure> {
        let beyond = eyes.lookout.beyond;
        if beyond > 0 && !self.crowded {
            self.tell.crowded(self.looks.limit, beyond)?;
        }
        self.crowded = beyond > 0;
        let unread = eyes.lookout.unread;
        if unread > self.unread {
            self.tell.unread(unread)?;
        }
        self.unread = unread;
        Ok(())
    }
}
