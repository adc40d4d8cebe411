//! What came of a break: told as it happens, or as one object at the end.

use std::convert::Infallible;
use std::time::Duration;

use bandog::Locks;
use serde_json::{Value, json};

use super::follow::{Followed, follow};
use crate::args::Break;
use crate::entry::{Holding, of_ticket, time_words, wall_micros};
use crate::exit::{BUSY, Exit};
use crate::failure::Failure;
use crate::note::{micros, millis, short};
use crate::say::{write, write_wrapped};
use crate::screen::{Ink, Out, Screen, harmless};
use crate::signals::Interrupts;

/// A holder that listens has answered by then, if its command ends soon.
const PATIENCE: Duration = Duration::from_secs(2);

/// A hold and what became of the wish.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) target: Holding,
    /// How long its end can take; `None` if it had ended before.
    pub(super) ended: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Report<'a> {
    args: &'a Break,
    screen: Screen,
    out: Out,
    broken: Vec<Broken>,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a Break) -> Self {
        Self { args, screen: Screen::stdout(), out: Out::new(), broken: Vec::new() }
    }

    pub(super) fn add(&mut self, target: Holding, ended: Option<Duration>) -> Result<(), Failure> {
        if !self.args.store.json {
            let words = self.words(&target, ended);
            self.out.line(&self.screen.wrap(&words, 2))?;
            self.out.flush()?;
        }
        self.broken.push(Broken { target, ended });
        Ok(())
    }

    fn longest(&self) -> Option<Duration> {
        self.broken.iter().filter_map(|broken| broken.ended).max()
    }

    /// Waits until the holders have given up, unless nobody wants to, and tells how it ended.
    pub(super) async fn follow(mut self, locks: &Locks) -> Result<Exit, Failure> {
        let Some(longest) = self.longest() else {
            return self.close(None).and(Ok(Exit::NoLock));
        };
        if self.args.no_wait {
            self.warn_of_deaf();
            return self.close(None).and(Ok(Exit::Fine));
        }
        let mut interrupts = Interrupts::new();
        self.warn_of_deaf();
        let followed = tokio::select! {
            followed = follow(locks, &self.args.name, &self.broken, longest) => followed,
            never = self.warn_of_silence() => match never {},
            signal = interrupts.next() => {
                write("bandog: not waited for; what was asked stays asked\n");
                return self.close(None).and(Ok(Exit::Interrupted(signal)));
            }
        };
        match followed {
            Ok(followed) => {
                self.close(Some(&followed))?;
                Ok(if followed.is_over() { Exit::Fine } else { Exit::Busy(BUSY) })
            }
            Err(failure) => self.close(None).and(Err(failure)),
        }
    }

    /// Nobody answers for a ticket: the process that took it ended long ago.
    fn warn_of_deaf(&self) {
        for broken in &self.broken {
            if let (Some(left), Some(_), false) = (broken.ended, of_ticket(&broken.target.who.label), self.args.now) {
                self.warn(
                    "it is a ticket, and no process listens: whoever has it hears of this at the next renewal",
                    left,
                );
            }
        }
    }

    /// A process that is gone does not answer either, and nobody can see that from here.
    async fn warn_of_silence(&self) -> Infallible {
        tokio::time::sleep(PATIENCE).await;
        let listens = |broken: &&Broken| of_ticket(&broken.target.who.label).is_none();
        if let Some(left) =
            self.broken.iter().filter(listens).filter_map(|broken| broken.ended).max().filter(|_| !self.args.now)
        {
            self.warn(
                "no answer yet: its command may take its time to end, or its process is gone and does not listen",
                left.saturating_sub(PATIENCE),
            );
        }
        std::future::pending().await
    }

    fn warn(&self, what: &str, left: Duration) {
        let ends = time_words(wall_micros() + micros(left));
        let text = format!("{what}; its lease ends at {ends}, in {}; --now would end the hold at once", short(left));
        match self.args.store.json {
            true => write(&format!("{}\n", json!({ "event": "warning", "lock": self.args.name, "message": text }))),
            false => write_wrapped(&format!("bandog: {}: {text}", harmless(&self.args.name))),
        }
    }

    /// The end of it, whatever came of the waiting.
    pub(super) fn close(&mut self, followed: Option<&Followed>) -> Result<(), Failure> {
        if self.args.store.json {
            let answer = self.json(followed);
            self.out.json(&answer)?;
        } else if let Some(followed) = followed {
            let words = followed.words(self.screen, self.args.now);
            self.out.line(&self.screen.wrap(&words, 2))?;
        }
        self.out.flush()
    }

    fn words(&self, target: &Holding, ended: Option<Duration>) -> String {
        let name = self.screen.paint(Ink::Strong, &harmless(&self.args.name));
        let holder = format!("{} of {}", target.id, target.who);
        match ended {
            None => format!("{name}: {holder} had ended before"),
            Some(_) if self.args.now => format!("{name}: the hold {holder} was ended at once"),
            Some(left) => {
                let again = if target.revoked.is_some() { " again" } else { "" };
                let within = short(left);
                format!(
                    "{name}: {holder} was asked{again} to give up; the lock passes on when it does, within {within}"
                )
            }
        }
    }

    fn json(&self, followed: Option<&Followed>) -> Value {
        let (now, reason) = (self.args.now, self.args.reason.trim());
        let one = |broken: &Broken| {
            let mut json = broken.target.json();
            json["outcome"] = match broken.ended {
                None => "gone",
                Some(_) if now => "ended",
                Some(_) => "asked",
            }
            .into();
            if broken.ended.is_some() {
                json["revoked"] = reason.into();
            }
            json
        };
        json!({
            "lock": self.args.name,
            "now": now,
            "reason": reason,
            "holders": self.broken.iter().map(one).collect::<Vec<_>>(),
            "lease_left_ms": self.longest().map(millis),
            "given_up_ms": followed.filter(|_| !now).and_then(Followed::given_up).map(millis),
            "how": followed.and_then(Followed::how),
            "held_by": followed.map(|followed| followed.next.iter().map(Holding::json).collect::<Vec<_>>()),
        })
    }
}
