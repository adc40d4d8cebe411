//! What the wrapper and the supervisor say to each other: one packet, one word and what belongs to it.
//!
//! Plain text, so that a trace of system calls can be read; only values of variables are arbitrary bytes. Both sides
//! are the same program, so there are no versions: a packet that cannot be read ends the conversation.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str;

use bandog::Moment;

use super::happening::{Cause, Ending, Status};

/// From the wrapper to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease is good until then.
    Until(Moment),
    /// A variable for the command's environment; only before `Go`.
    Set(OsString, OsString),
    /// Start the command.
    Go,
    /// Pass this signal on to the command's process group.
    Signal(i32),
    /// TERM now, KILL then.
    End(Moment),
    /// KILL now.
    Kill,
}

/// From the supervisor to the wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The launcher runs, with this process id; it and its group become the command's.
    Started(i32),
    /// There is no launcher: the system's error number.
    Failed(i32),
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command is over. The last word.
    Ended(Ending),
}

impl Order {
    /// The packet.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Until(at) => format!("until {}", at.nanos()).into_bytes(),
            Self::Set(key, value) => [b"set ", key.as_bytes(), b"\0", value.as_bytes()].concat(),
            Self::Go => b"go".to_vec(),
            Self::Signal(signal) => format!("signal {signal}").into_bytes(),
            Self::End(kill_at) => format!("end {}", kill_at.nanos()).into_bytes(),
            Self::Kill => b"kill".to_vec(),
        }
    }

    /// The order in a packet.
    pub(super) fn from_bytes(packet: &[u8]) -> Option<Self> {
        if let Some(variable) = packet.strip_prefix(b"set ") {
            // Neither keys nor values can contain a zero: the system ends them with one.
            let zero = variable.iter().position(|byte| *byte == 0)?;
            return Some(Self::Set(os_string(&variable[..zero]), os_string(&variable[zero + 1..])));
        }
        let words: Vec<&str> = str::from_utf8(packet).ok()?.split(' ').collect();
        Some(match words[..] {
            ["until", nanos] => Self::Until(Moment::from_nanos(nanos.parse().ok()?)),
            ["go"] => Self::Go,
            ["signal", signal] => Self::Signal(signal.parse().ok()?),
            ["end", nanos] => Self::End(Moment::from_nanos(nanos.parse().ok()?)),
            ["kill"] => Self::Kill,
            _ => return None,
        })
    }
}

impl Report {
    /// The packet.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Started(pid) => format!("started {pid}"),
            Self::Failed(errno) => format!("failed {errno}"),
            Self::Stopped(signal) => format!("stopped {signal}"),
            Self::Ended(Ending { status, cause }) => format!("{} {}", status_words(status), cause_word(cause)),
        }
        .into_bytes()
    }

    /// The report in a packet.
    pub(super) fn from_bytes(packet: &[u8]) -> Option<Self> {
        let words: Vec<&str> = str::from_utf8(packet).ok()?.split(' ').collect();
        let [word, number, rest @ ..] = &words[..] else { return None };
        let number = number.parse().ok()?;
        Some(match (*word, rest) {
            ("started", []) => Self::Started(number),
            ("failed", []) => Self::Failed(number),
            ("stopped", []) => Self::Stopped(number),
            ("exited", [cause]) => Self::Ended(Ending { status: Status::Code(number), cause: cause_from(cause)? }),
            ("killed", [cause]) => Self::Ended(Ending { status: Status::Signal(number), cause: cause_from(cause)? }),
            _ => return None,
        })
    }
}

fn status_words(status: Status) -> String {
    match status {
        Status::Code(code) => format!("exited {code}"),
        Status::Signal(signal) => format!("killed {signal}"),
        // The supervisor always knows; a number no system gives keeps the packet readable.
        Status::Unknown => "exited -1".to_owned(),
    }
}

fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Own => "own",
        Cause::Asked => "asked",
        Cause::Lease => "lease",
        Cause::Unsupervised => "unsupervised",
    }
}

fn cause_from(word: &str) -> Option<Cause> {
    [Cause::Own, Cause::Asked, Cause::Lease, Cause::Unsupervised].into_iter().find(|cause| cause_word(*cause) == word)
}

fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_way() {
        let odd = OsString::from_vec(b"\xff = \n until 5".to_vec());
        let orders = [
            Order::Until(Moment::from_nanos(u64::MAX)),
            Order::Set("KEY".into(), odd.clone()),
            Order::Set(odd, OsString::new()),
            Order::Go,
            Order::Signal(15),
            Order::End(Moment::from_nanos(7)),
            Order::Kill,
        ];
        for order in orders {
            assert_eq!(Order::from_bytes(&order.to_bytes()), Some(order));
        }
    }

    #[test]
    fn reports_survive_the_way() {
        let mut reports = vec![Report::Started(77), Report::Failed(11), Report::Stopped(20)];
        for cause in [Cause::Own, Cause::Asked, Cause::Lease, Cause::Unsupervised] {
            for status in [Status::Code(3), Status::Signal(9)] {
                reports.push(Report::Ended(Ending { status, cause }));
            }
        }
        for report in reports {
            assert_eq!(Report::from_bytes(&report.to_bytes()), Some(report));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for packet in [&b""[..], b"until", b"until x", b"until 1 2", b"go on", b"set A", b"\xff"] {
            assert_eq!(Order::from_bytes(packet), None, "{packet:?}");
            assert_eq!(Report::from_bytes(packet), None, "{packet:?}");
        }
    }
}
