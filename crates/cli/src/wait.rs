//! Getting the lock: at once or with a wait, telling what is waited for, until it is there or a signal comes.
//!
//! `run` and `acquire` call it. Whatever is left behind by an early end, the client's shutdown releases.

use std::time::Duration;

use bandog::{AcquireError, Clock, ErrorKind, Locks, Moment};

use crate::args::{LockArgs, OnBusy};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::held::{Held, Request};
use crate::note::Note;
use crate::say::Say;
use crate::scene::Scene;
use crate::screen::harmless;
use crate::signals::Interrupts;

/// A wait shorter than this is not worth a word.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the scene is looked at while waiting.
const LOOK: Duration = Duration::from_secs(1);

/// How long the answer to the first try is good for: a store that said busy is not unreachable a moment later.
const FRESH: Duration = Duration::from_secs(1);

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
    pub(crate) on_busy: OnBusy,
    pub(crate) say: &'a Say,
}

impl Wait<'_> {
    pub(crate) async fn get(&self, request: &Request, interrupts: &mut Interrupts) -> Result<Got, Failure> {
        let began = Clock::system().now();
        let held = tokio::select! {
            biased;
            signal = interrupts.next() => return Err(self.interrupted(signal)),
            held = self.hold(request, began) => held?,
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

    /// Tries first: a free lock is not waited for, however short the wait.
    async fn hold(&self, request: &Request, began: Moment) -> Result<Held, Failure> {
        if let Some(held) = request.clone().at_once().try_acquire().await.map_err(|error| failure(&error))? {
            return Ok(held);
        }
        let is_at_once = self.args.nonblock || self.args.wait.is_some_and(|wait| wait.is_zero());
        // To flock(1) a lock of its own is as busy as another's.
        if !(is_at_once && self.say.is_like_flock()) {
            self.refuse_our_own().await?;
        }
        if is_at_once {
            return Err(self.busy(None).await);
        }
        tokio::select! {
            biased;
            ended = request.acquire() => match ended {
                Ok(held) => Ok(held),
                Err(error) if self.is_over(&error, began) => Err(self.busy(Some(since(began))).await),
                Err(error) => Err(failure(&error)),
            },
            never = self.tell(began) => match never {},
        }
    }

    /// Whether the wait is over, and not the store to blame: it has answered, and said busy.
    fn is_over(&self, error: &AcquireError, began: Moment) -> bool {
        let waited_enough = self.args.wait.is_some_and(|wait| since(began) >= wait);
        match error.kind() {
            ErrorKind::Busy | ErrorKind::Timeout => true,
            ErrorKind::Unavailable => waited_enough && since(began) < FRESH,
            _ => false,
        }
    }

    /// Says who is waited for, again and again.
    async fn tell(&self, began: Moment) -> std::convert::Infallible {
        tokio::time::sleep(PATIENCE).await;
        let (mut last, mut answered) = (None, Clock::system().now());
        loop {
            let asked = Clock::system().now();
            let scene = Scene::ask(self.locks, &self.args.name).await;
            let waited = since(began);
            let note = match scene.clone() {
                Some(scene) => {
                    answered = asked;
                    Note::Waiting { scene, waited }
                }
                None => Note::Unanswered { waited, silent: since(answered) },
            };
            if self.say.is_live() {
                self.say.live(&self.args.name, &note);
            } else if last.as_ref().is_none_or(|last| is_news(last, scene.as_ref())) {
                self.say.note(&self.args.name, &note);
            }
            last = Some(scene);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A command that runs under this very lock would wait for itself.
    async fn refuse_our_own(&self) -> Result<(), Failure> {
        let Ok(above) = std::env::var("BANDOG_HOLDER") else { return Ok(()) };
        // Of a semaphore there may be more.
        if self.args.of.is_some() || !Scene::of(self.locks, &self.args.name).await.is_held_by(&above) {
            return Ok(());
        }
        let name = harmless(&self.args.name);
        let text =
            format!("{name}: this already runs under that lock (BANDOG_HOLDER is {above}), and would wait for itself");
        Err(Failure::new(ErrorKind::WouldDeadlock.as_str(), Exit::Usage, text))
    }

    async fn busy(&self, waited: Option<Duration>) -> Failure {
        if self.on_busy == OnBusy::Skip {
            self.say.clear();
            return Failure::said(Exit::Fine);
        }
        let scene = Scene::of(self.locks, &self.args.name).await.without_us();
        self.say.note(&self.args.name, &Note::Busy { scene, waited });
        Failure::said(Exit::Busy(self.args.conflict_exit_code))
    }

    /// A signal came while the lock was waited for, or before anything was done with it.
    pub(crate) fn interrupted(&self, signal: i32) -> Failure {
        self.say.note(&self.args.name, &Note::Interrupted { signal });
        Failure::said(Exit::Interrupted(signal))
    }
}

/// Whether somebody else holds it now, or the store has fallen silent or answers again.
fn is_news(last: &Option<Scene>, scene: Option<&Scene>) -> bool {
    match (last, scene) {
        (Some(last), Some(scene)) => scene.has_changed(last),
        (None, None) => false,
        _ => true,
    }
}

fn since(began: Moment) -> Duration {
    Clock::system().now().since(began)
}

fn failure(error: &AcquireError) -> Failure {
    Failure::of(error.kind(), error)
}
