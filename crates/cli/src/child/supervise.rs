//! The supervisor: starts the command when it is told to, and makes sure that it ends. Started by the wrapper, talks
//! only to it, and has no runtime: one thread, one loop.
//!
//! Invariants: everything that comes from the command stays its descendant (it is a subreaper); when the wrapper is
//! gone nothing of the command is left alive; it ends itself only after its last child, or after a command that ended
//! by itself.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use bandog::{Clock, Moment};
use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_child_subreaper};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};

use super::happening::{Cause, Ending};
use super::kin;
use super::launch::Origin;
use super::link::{LARGEST, Link};
use super::plan::{Policy, Respite};
use super::signals::{Ignored, survive};
use super::terminal;
use super::ward::Ward;
use super::watch::{Due, Watch};
use super::word::{Order, Report};

/// What the wrapper puts into the arguments.
#[derive(Debug)]
pub(super) struct Brief {
    /// Where it listens.
    pub(super) socket: String,
    /// What happens at the end of the lease.
    pub(super) policy: Policy,
    /// How much time the command is given.
    pub(super) respite: Respite,
}

impl Brief {
    /// As arguments.
    pub(super) fn args(&self) -> [String; 4] {
        let nanos = |length: Duration| length.as_nanos().to_string();
        let Respite { grace, margin } = self.respite;
        [self.socket.clone(), self.policy.word().to_owned(), nanos(grace), nanos(margin)]
    }

    fn parse(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let mut word = || args.next()?.into_string().ok();
        let (socket, policy) = (word()?, Policy::from_word(&word()?)?);
        let mut nanos = || Some(Duration::from_nanos(word()?.parse().ok()?));
        Some(Self { socket, policy, respite: Respite { grace: nanos()?, margin: nanos()? } })
    }
}

/// Runs the supervisor to its end. The exit code only shows in traces.
pub(super) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let began = Brief::parse(&mut args).ok_or_else(|| io::ErrorKind::InvalidInput.into());
    match began.and_then(|brief| Supervisor::new(&brief, args.collect())).and_then(Supervisor::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[derive(Debug)]
struct Supervisor {
    link: Link<OwnedFd>,
    buffer: Vec<u8>,
    bell: UnixStream,
    timer: OwnedFd,
    origin: Origin,
    watch: Watch,
    ward: Ward,
    wrapper_gone: bool,
    reported: bool,
}

impl Supervisor {
    fn new(brief: &Brief, command: Vec<OsString>) -> io::Result<Self> {
        let wrapper = getppid().ok_or(io::ErrorKind::NotFound)?;
        let link = Link::connect(&brief.socket, wrapper)?;
        // "pkill -9 bandog" means the wrapper: this process has to be there to clean up after it.
        let _ = rustix::thread::set_name(c"lock-supervisor");
        survive(Ignored::now())?;
        set_child_subreaper(Some(getpid()))?;
        Ok(Self {
            link,
            buffer: vec![0; LARGEST],
            bell: bell()?,
            timer: timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?,
            origin: Origin { wrapper, wrapper_group: kin::group(Some(wrapper)), socket: brief.socket.clone() },
            watch: Watch::new(brief.policy, brief.respite),
            ward: Ward::new(command),
            wrapper_gone: false,
            reported: false,
        })
    }

    fn run(mut self) -> io::Result<()> {
        while !self.is_over() {
            self.wait_for_news()?;
            self.listen();
            if let Some(signal) = self.ward.reap() {
                self.report(Report::Stopped(signal));
            }
            self.act(Clock::system().now());
        }
        Ok(())
    }

    fn wait_for_news(&mut self) -> io::Result<()> {
        // What is due stays due while it is being killed: then it is the next attempt that counts.
        set_timer(&self.timer, self.ward.next_attempt().or_else(|| self.watch.alarm()))?;
        let mut files = vec![PollFd::new(&self.bell, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        // A closed link would always be readable.
        if !self.wrapper_gone {
            files.push(PollFd::new(&self.link, PollFlags::IN));
        }
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Emptied before the children are looked at: one that ends meanwhile rings again.
        while matches!((&self.bell).read(&mut [0; 64]), Ok(1..)) {}
        Ok(())
    }

    fn listen(&mut self) {
        while !self.wrapper_gone {
            let order = match self.link.receive(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(length @ 1..) => Order::from_bytes(&self.buffer[..length]),
                Ok(_) | Err(_) => None,
            };
            // What cannot be read comes from nobody we know; the safe way out is that of a dead wrapper.
            match order {
                Some(order) => self.obey(order),
                None => self.wrapper_gone = true,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Until(until) => self.watch.keep(until),
            Order::Set(key, value) => self.ward.set(key, value),
            // The wrapper may have slept since it had the lock.
            Order::Go if !self.watch.may_begin(Clock::system().now()) => {
                self.report(Report::Failed(Errno::TIMEDOUT.raw_os_error()));
            }
            Order::Go => {
                let started = self.ward.start(&self.origin);
                self.report(started.map_or_else(
                    |error| Report::Failed(error.raw_os_error().unwrap_or_default()),
                    |pid| Report::Started(pid.as_raw_pid()),
                ));
            }
            Order::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.ward.signal(signal);
                }
            }
            Order::End(kill_at) if self.watch.is_ending() => self.watch.end(kill_at),
            Order::End(kill_at) => {
                self.watch.end(kill_at);
                self.ward.ask_to_end();
            }
            Order::Kill => self.watch.end(Moment::ZERO),
        }
    }

    fn act(&mut self, now: Moment) {
        if self.wrapper_gone {
            return self.bury_all(now);
        }
        match self.watch.due(now) {
            Some(Due::Term) => self.ward.ask_to_end(),
            Some(Due::Kill) => self.ward.kill(now),
            None => {}
        }
        if let Some(status) = self.ward.status().filter(|_| !self.reported && self.may_report(now)) {
            self.reported = true;
            self.report(Report::Ended(Ending { status, cause: self.watch.cause() }));
        }
    }

    fn bury_all(&mut self, now: Moment) {
        self.ward.kill(now);
        if let (Some(from), Some(to)) = (self.ward.group(), self.origin.wrapper_group) {
            terminal::give_back(from, to);
        }
    }

    // A command that ends by itself may leave processes behind; one that is made to end may not.
    fn may_report(&self, now: Moment) -> bool {
        self.watch.cause() == Cause::Own || self.ward.is_childless() || self.ward.is_hopeless(now)
    }

    fn is_over(&self) -> bool {
        if self.wrapper_gone || self.watch.is_ending() {
            // Before the start there are no children either.
            return self.ward.is_childless() && (self.reported || self.wrapper_gone);
        }
        self.reported
    }

    fn report(&self, report: Report) {
        // It fails if the wrapper is gone, which the next look at the link shows.
        let _ = self.link.send(&report.to_bytes());
    }
}

/// Readable whenever a child has ended or stopped.
fn bell() -> io::Result<UnixStream> {
    let (bell, ringer) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, ringer)?;
    // Whoever started the wrapper may have blocked it.
    let mut children = SigSet::empty();
    children.add(NixSignal::SIGCHLD);
    children.thread_unblock()?;
    Ok(bell)
}

/// Sets the timer, which never goes off early and is not held up by a machine asleep.
fn set_timer(timer: &OwnedFd, at: Option<Moment>) -> io::Result<()> {
    let nanos = at.map_or(0, |at| at.nanos().max(1));
    let second = 1_000_000_000;
    let parts = (i64::try_from(nanos / second), i64::try_from(nanos % second));
    let (Ok(tv_sec), Ok(tv_nsec)) = parts else { return Err(io::ErrorKind::InvalidInput.into()) };
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Itimerspec { it_interval: never, it_value: Timespec { tv_sec, tv_nsec } };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}
