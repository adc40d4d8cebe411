//! Getting the lock: with or without a wait, telling what is waited for, until it is there or a signal comes.
//!
//! `run` and `acquire` call it. Whatever is left behind by an early end, the client's shutdown releases.

use std::pin::pin;
use std::time::Duration;

use bandog::{AcquireError, Clock, ErrorKind, Locks, Moment};
use tokio::time::MissedTickBehavior;

use crate::args::{LockArgs, OnBusy};
use crate::exit::Exit;
use crate::held::{Held, Request};
use crate::note::Note;
use crate::say::{Failure, Say};
use crate::scene::Scene;
use crate::signals::Interrupts;

/// A wait shorter than this is not worth a word.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the scene is looked at while waiting.
const LOOK: Duration = Duration::from_secs(1);

/// The lock and how long it took.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) held: Held,
    pub(crate) waited: Duration,
}

/// One try at the lock.
pub(crate) struct Wait<'a> {
    pub(crate) locks: &'a Locks,
    pub(crate) args: &'a LockArgs,
    pub(crate) say: &'a Say,
}

impl Wait<'_> {
    pub(crate) async fn get(&self, request: &Request, interrupts: &mut Interrupts) -> Result<Got, Failure> {
        let began = Clock::system().now();
        let waits = !self.args.nonblock && self.args.wait.is_none_or(|wait| !wait.is_zero());
        let got = async { if waits { self.patiently(request, began).await } else { self.at_once(request).await } };
        let held = tokio::select! {
            biased;
            signal = interrupts.next() => return Err(self.interrupted(signal)),
            held = got => held?,
        };
        let was_shown = self.say.was_waiting();
        let waited = since(began);
        let hold = held.hold();
        let note = Note::Acquired { token: hold.token(), holder: hold.holder(), waited };
        // Whoever saw the wait wants to see its end.
        let tell = if was_shown { Say::news } else { Say::note };
        tell(self.say, &self.args.name, &note);
        Ok(Got { held, waited })
    }

    async fn at_once(&self, request: &Request) -> Result<Held, Failure> {
        match request.try_acquire().await {
            Ok(Some(held)) => Ok(held),
            Ok(None) => Err(self.busy(None).await),
            Err(error) => Err(failure(&error)),
        }
    }

    async fn patiently(&self, request: &Request, began: Moment) -> Result<Held, Failure> {
        let mut acquire = pin!(request.acquire());
        let mut looks = tokio::time::interval_at(tokio::time::Instant::now() + PATIENCE, LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = None;
        loop {
            tokio::select! {
                biased;
                ended = &mut acquire => return match ended {
                    Ok(held) => Ok(held),
                    Err(AcquireError::Timeout { waited, .. }) => Err(self.busy(Some(waited)).await),
                    Err(error) => Err(failure(&error)),
                },
                _ = looks.tick() => self.look(&mut last, began).await,
            }
        }
    }

    async fn look(&self, last: &mut Option<Scene>, began: Moment) {
        let scene = Scene::of(self.locks, &self.args.name).await;
        let note = Note::Waiting { scene: scene.clone(), waited: since(began) };
        if self.say.is_live() {
            self.say.live(&self.args.name, &note);
        } else if last.as_ref().is_none_or(|last| scene.has_changed(last)) {
            self.say.note(&self.args.name, &note);
        }
        *last = Some(scene);
    }

    async fn busy(&self, waited: Option<Duration>) -> Failure {
        if self.args.on_busy == OnBusy::Skip {
            self.say.clear();
            return Failure::new(Exit::Fine, "");
        }
        let scene = Scene::of(self.locks, &self.args.name).await.without_us();
        self.say.note(&self.args.name, &Note::Busy { scene, waited });
        Failure::new(Exit::Busy(self.args.conflict_exit_code), "")
    }

    /// A signal came while the lock was waited for, or before anything was done with it.
    pub(crate) fn interrupted(&self, signal: i32) -> Failure {
        self.say.note(&self.args.name, &Note::Interrupted { signal });
        Failure::new(Exit::Interrupted(signal), "")
    }
}

fn since(began: Moment) -> Duration {
    Clock::system().now().since(began)
}

/// The exit code of an error of the library.
pub(crate) fn exit(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Invalid | ErrorKind::WrongKind => Exit::Usage,
        ErrorKind::Timeout => Exit::Busy(crate::exit::BUSY),
        ErrorKind::Lost => Exit::Lost,
        _ => Exit::Unavailable,
    }
}

fn failure(error: &AcquireError) -> Failure {
    Failure::new(exit(error.kind()), error.to_string())
}
