//! Which signals are passed on, and which were ignored from the start. Used by the wrapper and the supervisor.
//!
//! Invariant: a signal that was ignored when the program started (`nohup`, a job in the background of a script) never
//! gets a handler, in any of the processes: the command inherits that it is ignored.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the wrapper passes on to the command. WINCH only reaches it when the command is not in the foreground itself.
const FORWARDED: [i32; 9] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP];
/// What the supervisor survives. Not CONT and WINCH, which do nothing to a process without a handler.
const SURVIVED: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP];

/// The signals this process ignores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignored(u64);

impl Ignored {
    /// Reads them from the system. To be called before any handler is installed: it replaces "ignored".
    pub fn now() -> Self {
        Self(fs::read_to_string("/proc/self/status").ok().and_then(|status| mask(&status)).unwrap_or(0))
    }

    /// Whether `signal` is one of them. Such a signal must not get a handler.
    pub fn contains(self, signal: i32) -> bool {
        u32::try_from(signal - 1).is_ok_and(|bit| self.0.checked_shr(bit).is_some_and(|mask| mask & 1 == 1))
    }
}

/// The signals that reach the wrapper, to be passed on.
#[derive(Debug)]
pub(super) struct Signals(Vec<(i32, Signal)>);

impl Signals {
    /// Takes over every signal that is passed on. They stay taken until the process ends.
    pub(super) fn catch(ignored: Ignored) -> io::Result<Self> {
        let wanted = FORWARDED.into_iter().filter(|number| !ignored.contains(*number));
        wanted.map(|number| Ok((number, signal(SignalKind::from_raw(number))?))).collect::<io::Result<_>>().map(Self)
    }

    /// The next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if let Poll::Ready(Some(())) = signal.poll_recv(context) {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Makes this process survive what is sent to it. Handlers rather than "ignore", which the command would inherit.
pub(super) fn survive(ignored: Ignored) -> io::Result<()> {
    for number in SURVIVED.into_iter().filter(|number| !ignored.contains(*number)) {
        signal_hook::flag::register(number, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

fn mask(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_count_from_one() {
        let ignored = Ignored(mask("Name:\tx\nSigIgn:\t0000000000001003\nSigCgt:\tff\n").unwrap());
        let found: Vec<i32> = (-1..130).filter(|signal| ignored.contains(*signal)).collect();
        assert_eq!(found, [1, 2, 13]);
    }

    #[test]
    fn the_system_is_asked() {
        assert!(Ignored::now().contains(signal_hook::consts::SIGPIPE), "every Rust program ignores it");
    }
}
