//! Holding the lock while the child runs: the supervisor is told of every renewal, and the child is ended when the lease is
//! lost or the maximum hold is over.
//!
//! Invariant: the supervisor never believes in a later end of the lease than the guard does.

use std::os::unix::process::CommandExt;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bandog::{Clock, GuardState, Hold, LossReason, Moment, ReleaseError};

use crate::args::{OnLost, Run};
use crate::child::{self, Cause, Child, Ending, Happening, Refused, Respite, Status};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::held::Held;
use crate::note::{Note, Ran};
use crate::say::Say;
use crate::signals::Interrupts;

/// How long the end of a lost hold is waited for: it is over whether or not the store answers.
const SOON: Duration = Duration::from_millis(250);

/// How long the client's end is waited for after that: a store that answered so far needs no longer.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(50);

/// How it all ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Over {
    pub(crate) exit: Exit,
    /// Whether there is nothing left to release.
    pub(crate) is_lost: bool,
}

/// The lock and its rules while the child runs.
pub(crate) struct Keep<'a> {
    args: &'a Run,
    say: &'a Say,
    held: Held,
    hold: Hold,
    since: Moment,
    /// Between two looks at the lease.
    tick: Duration,
    respite: Respite,
    /// The latest end of the lease that was known.
    until: Moment,
    /// The last look at the lease.
    looked: Moment,
    /// Whether this process stood still until the supervisor had to act. The command is lost then, whatever is renewed later.
    stood: bool,
    ended: Option<Exit>,
    /// Whether the loss was told, or is not to be.
    told: bool,
    /// Whether what is to be run at the loss was run.
    called: bool,
}

impl<'a> Keep<'a> {
    pub(crate) fn new(args: &'a Run, say: &'a Say, held: Held, respite: Respite) -> Self {
        let hold = held.hold();
        // Read before the lease: a pause in between makes the end too early, never too late.
        let since = now();
        let left = hold.remaining();
        let (until, tick) = (since + left, (left / 10).max(Duration::from_millis(5)));
        Self {
            args,
            say,
            held,
            hold,
            since,
            tick,
            respite,
            until,
            looked: since,
            stood: false,
            ended: None,
            told: false,
            called: false,
        }
    }

    /// Until when the lease is good, as far as is known.
    pub(crate) fn until(&self) -> Moment {
        self.until
    }

    /// Holds the lock until the child has ended, and releases it. `caught` is a signal that came while the child started.
    pub(crate) async fn through(mut self, mut child: Child, caught: Option<i32>) -> Over {
        let refused = child.refused().map(|refused| not_run(refused).about(&self.args.lock.name));
        match &refused {
            Some(failure) => self.say.failure(failure),
            None => self.note(&Note::Started { pid: child.pid().unsigned_abs() }),
        }
        let began = now();
        if let Some(signal) = caught {
            self.caught(&mut child, signal);
        }
        let ending = self.watch(&mut child).await;
        let ran = refused.is_none().then(|| Ran { status: ending.status, length: now().since(began) });
        drop(child);
        let mut exit = self.exit(ending);
        if let Some(signal) = self.at_least().await {
            self.note(&Note::Shortened { signal });
            exit = Exit::Interrupted(signal);
        }
        let is_lost = self.is_lost();
        Over { exit: self.release(exit, ran).await, is_lost }
    }

    /// Ends the child for a signal, unless the child has the signal too: it came before or after signals were passed on.
    fn caught(&mut self, child: &mut Child, signal: i32) {
        let now_or_never = pin!(child.next()).poll(&mut Context::from_waker(Waker::noop()));
        if now_or_never != Poll::Ready(Happening::Forwarded(signal)) {
            self.ended = Some(Exit::Interrupted(signal));
            self.note(&Note::Interrupted { signal });
            child.end(now() + self.respite.grace);
        }
    }

    async fn watch(&mut self, child: &mut Child) -> Ending {
        let hold = self.hold.clone();
        let mut lost = pin!(hold.lost());
        loop {
            let overdue = self.args.max_hold.filter(|_| self.ended.is_none()).map(|max| self.since + max);
            tokio::select! {
                happening = child.next() => match happening {
                    Happening::Exited(ending) => return ending,
                    Happening::Stopped(_) => self.stopped(child).await,
                    Happening::Resumed => self.resumed(child).await,
                    _ => {}
                },
                reason = &mut lost, if !self.told => self.lost(child, reason),
                () = sleep_until(self.next_look()) => self.look(child),
                () = sleep_until(overdue.unwrap_or(Moment::FAR)), if overdue.is_some() => self.overdue(child),
            }
        }
    }

    /// Tells the supervisor of renewals; if none came in time, asks the child to end while there is time for it.
    fn look(&mut self, child: &mut Child) {
        let now = now();
        self.renewed(now);
        child.keep(self.until);
        if self.danger() <= now && self.ended.is_none() && self.args.on_lost == OnLost::Term {
            self.ended = Some(Exit::Lost);
            let reason = self.reason();
            self.note(&Note::Danger { reason: reason.clone(), grace: self.kill_at().since(now) });
            child.end(self.kill_at());
            self.call(&reason);
        }
    }

    /// Takes over what the guard knows of the lease, and notices when this process slept over its end.
    fn renewed(&mut self, now: Moment) {
        self.stood |= self.is_late(now);
        (self.until, self.looked) = (self.until.max(now + self.hold.remaining()), now);
    }

    /// Whether the supervisor had to act while this process stood still: a look is due several times before that.
    fn is_late(&self, now: Moment) -> bool {
        let due = if self.args.on_lost == OnLost::Term { self.danger() } else { self.kill_at() };
        due <= now && now.since(self.looked) > self.tick * 3
    }

    /// Why the lease could not be kept: as the guard has it, or else as far as can be seen from here.
    fn reason(&self) -> LossReason {
        match self.hold.state() {
            GuardState::Lost { reason } if !matches!(reason, LossReason::Expired | LossReason::Unreachable) => reason,
            _ if self.stood => LossReason::Expired,
            _ => LossReason::Unreachable,
        }
    }

    /// When the lease leaves no more time than the command is given.
    fn danger(&self) -> Moment {
        self.kill_at() - self.respite.grace
    }

    fn kill_at(&self) -> Moment {
        self.until - self.respite.margin
    }

    fn next_look(&self) -> Moment {
        let (now, danger) = (now(), self.danger());
        if self.ended.is_none() && danger > now { danger.min(now + self.tick) } else { now + self.tick }
    }

    /// Ends the child, then tells why.
    fn lost(&mut self, child: &mut Child, reason: LossReason) {
        self.told = true;
        let exit = if reason == LossReason::MaxHold { Exit::MaxHold } else { Exit::Lost };
        let (first, held) = (self.ended.is_none(), now().since(self.since));
        self.ended.get_or_insert(exit);
        let action = match self.args.on_lost {
            OnLost::Term if first => {
                child.end(self.kill_at().min(now() + self.respite.grace));
                "stopping the command (TERM, then KILL)"
            }
            OnLost::Term => "stopping the command (TERM, then KILL)",
            OnLost::Kill => {
                child.kill();
                "stopping the command (KILL)"
            }
            OnLost::Notify => "the command goes on without it",
            OnLost::Ignore => return self.call(&reason),
        };
        self.call(&reason);
        self.note(&Note::Lost { reason, held, action });
    }

    fn overdue(&mut self, child: &mut Child) {
        self.ended = Some(Exit::MaxHold);
        let limit = self.args.max_hold.unwrap_or_default();
        let grace = self.respite.grace;
        self.note(&Note::MaxHold { limit, grace });
        child.end(now() + grace);
    }

    async fn stopped(&mut self, child: &mut Child) {
        self.note(&Note::Stopped);
        // A whole lease from here on: nobody renews while this process is stopped.
        self.renew().await;
        child.keep(self.until);
    }

    async fn resumed(&mut self, child: &mut Child) {
        self.renew().await;
        if self.hold.is_held() || matches!(self.args.on_lost, OnLost::Notify | OnLost::Ignore) {
            child.keep(self.until);
            child.resume();
            self.note(&Note::Resumed);
        } else {
            child.kill();
        }
    }

    async fn renew(&mut self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.held.renew()).await;
        self.renewed(now());
    }

    fn exit(&mut self, ending: Ending) -> Exit {
        if ending.cause == Cause::Lease {
            self.ended.get_or_insert(Exit::Lost);
        }
        if self.ended == Some(Exit::Lost) && !self.told {
            let now = now();
            // The supervisor may be faster than the look that is due.
            self.stood |= self.is_late(now);
            let (reason, held) = (self.reason(), now.since(self.since));
            self.call(&reason);
            self.note(&Note::Lost { reason, held, action: "the command was stopped" });
        }
        if ending.cause == Cause::Lease {
            return self.ended.unwrap_or(Exit::Lost);
        }
        match (self.ended, ending.status) {
            (Some(Exit::Lost), status) if self.args.on_lost == OnLost::Ignore => of(status),
            (Some(exit), _) => exit,
            (None, status) => of(status),
        }
    }

    /// Holds on for as long as was asked for; a signal ends that.
    async fn at_least(&self) -> Option<i32> {
        let end = self.since + self.args.at_least.unwrap_or_default();
        let left = end.since(now());
        if left.is_zero() || self.ended.is_some() {
            return None;
        }
        self.note(&Note::AtLeast { left });
        let mut interrupts = Interrupts::new();
        tokio::select! {
            signal = interrupts.next() => Some(signal),
            _ = self.hold.lost() => None,
            () = sleep_until(end) => None,
        }
    }

    fn is_lost(&self) -> bool {
        self.ended == Some(Exit::Lost) || matches!(self.hold.state(), GuardState::Lost { .. })
    }

    /// Runs what is to be run when the lease is lost, once.
    fn call(&mut self, reason: &LossReason) {
        if !std::mem::replace(&mut self.called, true) {
            call(self.args, self.say, &self.hold, reason);
        }
    }

    async fn release(self, exit: Exit, ran: Option<Ran>) -> Exit {
        let (name, say, held) = (&self.args.lock.name, self.say, now().since(self.since));
        let (args, hold, called) = (self.args, self.hold.clone(), self.called);
        let patience = if self.is_lost() { SOON } else { Duration::MAX };
        match tokio::time::timeout(patience, self.held.release()).await {
            Ok(Ok(())) => say.note(name, &Note::Released { held, ran }),
            Ok(Err(_)) | Err(_) if self.ended.is_some() => {}
            Ok(Err(ReleaseError::Lost { reason, .. })) if self.args.on_lost != OnLost::Ignore => {
                if !called {
                    call(args, say, &hold, &reason);
                }
                say.note(name, &Note::Lost { reason, held, action: "the command had ended" });
                return Exit::Lost;
            }
            Ok(Err(error)) => say.note(name, &Note::Unreleased { error: error.to_string() }),
            Err(_) => say.note(name, &Note::Unreleased { error: "the store does not answer".to_owned() }),
        }
        exit
    }

    fn note(&self, note: &Note) {
        self.say.note(&self.args.lock.name, note);
    }
}

/// Runs the text that is for a lost lease. Nobody waits for it.
fn call(args: &Run, say: &Say, hold: &Hold, reason: &LossReason) {
    let Some(text) = args.on_lost_exec.as_ref().filter(|_| *reason != LossReason::MaxHold) else { return };
    let mut hook = Command::new("/bin/sh");
    hook.arg("-c").arg(text).stdin(Stdio::null()).process_group(0);
    child::without_secrets(&mut hook);
    hook.env("BANDOG_NAME", &args.lock.name).env("BANDOG_TOKEN", hold.token().to_string());
    hook.env("BANDOG_LOST_REASON", reason.as_str()).env("BANDOG_LOST_MESSAGE", reason.to_string());
    if let Err(error) = hook.spawn() {
        say.note(&args.lock.name, &Note::NotCalled { error: error.to_string() });
    }
}

fn not_run(refused: &Refused) -> Failure {
    let kind = if refused.code == 127 { "not_found" } else { "not_executable" };
    Failure::new(kind, Exit::Child(refused.code), &refused.why)
}

fn of(status: Status) -> Exit {
    match status {
        Status::Code(code) => Exit::Child(u8::try_from(code).unwrap_or(u8::MAX)),
        Status::Signal(signal) => Exit::Killed(signal),
        // The supervisor was killed, and everything it ran with it.
        Status::Unknown => Exit::Killed(9),
    }
}

fn now() -> Moment {
    Clock::system().now()
}

async fn sleep_until(at: Moment) {
    tokio::time::sleep(at.since(now())).await;
}
