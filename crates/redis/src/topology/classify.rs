//! What a failure means: what sort of trouble it is, whether the operation may have taken effect, and words for people.
//!
//! Every error of the store is made here. A refusal of the server is judged by its first word alone: texts change between
//! versions. `NotExecuted` is said only where the server refuses before the first write, or where nothing was sent.

use std::sync::Arc;

use bandog_core::format::Format;
use bandog_core::name::LockName;
use bandog_core::store::{Outcome, StoreError, StoreErrorKind};

use crate::config::RedisConfig;
use crate::resp::{Broken, Unopened};
use crate::value::Wrong;

use super::checks::rule;

struct Row {
    word: &'static str,
    kind: StoreErrorKind,
    outcome: Outcome,
    says: &'static str,
}

const fn row(word: &'static str, kind: StoreErrorKind, outcome: Outcome, says: &'static str) -> Row {
    Row { word, kind, outcome, says }
}

/// The refusals of a server. Scripts look at the key before they write, and write first what needs no memory.
const REFUSALS: &[Row] = {
    use Outcome::NotExecuted as Not;
    use StoreErrorKind::{Denied, Unfit, Unready};
    &[
        row("NOSCRIPT", Unready, Not, "it has forgotten a script"),
        row("LOADING", Unready, Not, "it is loading its data"),
        row("BUSY", Unready, Not, "it is busy with somebody's script"),
        row("MASTERDOWN", Unready, Not, "it has lost its master"),
        row("CLUSTERDOWN", Unready, Not, "its cluster is down"),
        row("TRYAGAIN", Unready, Not, "its slots are being moved"),
        row("NOREPLICAS", Unready, Not, "it has fewer replicas than it needs to write"),
        row("EXECABORT", Unready, Not, "it gave up a transaction"),
        row("MOVED", Unfit, Not, "it is a node of a cluster, and the lock is on another"),
        row("ASK", Unfit, Not, "it is a node of a cluster, and the lock is being moved to another"),
        row("CROSSSLOT", Unfit, Not, "it is a node of a cluster"),
        row("READONLY", Unfit, Not, "it is a replica, which cannot be written to"),
        row("MISCONF", Unfit, Not, "it refuses writes because it cannot save its data"),
        row("OOM", Unfit, Not, "it has no memory left"),
        row("WRONGTYPE", Unfit, Not, "something that is no lock stands at the lock's key"),
        row("NEWFORMAT", Unfit, Not, ""),
        row("NOAUTH", Denied, Not, "it wants a password"),
        row("WRONGPASS", Denied, Not, "it does not know this user with this password"),
        row("NOPERM", Denied, Not, "this user may not do this"),
        row("NOPROTO", Unfit, Not, "it does not speak RESP3"),
    ]
};

/// Inside a script a permission is asked for when the command comes: what came before it stays.
const IN_SCRIPT: Row =
    row("ERR", StoreErrorKind::Denied, Outcome::Unknown, "this user may not do all that the scripts do");
/// Told instead of a greeting, before anything was sent.
const FULL: Row =
    row("ERR", StoreErrorKind::Unready, Outcome::NotExecuted, "it has as many clients as its maxclients allows");
const OTHER: Row = row("ERR", StoreErrorKind::Unfit, Outcome::Unknown, "it refused");

fn judge(text: &str) -> &'static Row {
    let word = text.split_whitespace().next().unwrap_or_default();
    if is_of_permission(text) {
        return &IN_SCRIPT;
    }
    if text.starts_with("ERR max number of clients reached") {
        return &FULL;
    }
    REFUSALS.iter().find(|row| row.word == word).unwrap_or(&OTHER)
}

/// The format of a record that this build does not know, if that is what a script refused.
fn newer(text: &str) -> Option<u8> {
    text.strip_prefix("NEWFORMAT ")?.split_whitespace().next()?.parse().ok()
}

/// Whether a script was refused a permission.
pub(crate) fn is_of_permission(text: &str) -> bool {
    text.contains("user executing the script") || text.contains("ACL failure in script")
}

/// The server answered with an error.
pub(crate) fn refused(config: &RedisConfig, lock: Option<&LockName>, text: &str) -> StoreError {
    let Row { kind, outcome, says, .. } = *judge(text);
    let about = lock.map(|name| format!(", lock {name:?}")).unwrap_or_default();
    let advice = match kind {
        StoreErrorKind::Denied if text.starts_with("NOAUTH") || text.starts_with("WRONGPASS") => String::new(),
        StoreErrorKind::Denied => format!("; {}", rule(config, text)),
        _ => String::new(),
    };
    let message = match newer(text) {
        Some(number) => format!("{config}{about}: {}", Format::unknown("its record", number)),
        None => format!("{config}{about}: {says} ({}){advice}", config.quoted(text)),
    };
    StoreError { kind, outcome, message, source: None }
}

/// The server's answer could not be read.
pub(crate) fn unreadable(config: &RedisConfig, lock: Option<&LockName>, wrong: Wrong) -> StoreError {
    if let Wrong::Refused(text) = &wrong {
        return refused(config, lock, text);
    }
    let about = lock.map(|name| format!(", lock {name:?}")).unwrap_or_default();
    let message = format!("{config}{about}: {wrong}");
    StoreError { source: Some(Arc::new(wrong)), kind: StoreErrorKind::Unfit, ..StoreError::unknown(message) }
}

/// A connection could not be opened: nothing was sent.
pub(crate) fn unreached(config: &RedisConfig, unopened: Unopened) -> StoreError {
    let (kind, message) = match &unopened.why {
        Broken::Refused(text) => {
            return StoreError { outcome: Outcome::NotExecuted, ..refused(config, None, text) };
        }
        Broken::Garbage(_) => {
            (StoreErrorKind::Unfit, format!("{config}: this is no Redis that could keep locks ({unopened})"))
        }
        broken if broken.is_mistrust() => (StoreErrorKind::Denied, format!("{config}: no trust: {broken}")),
        _ => (StoreErrorKind::Unavailable, format!("{config} cannot be reached: {unopened}")),
    };
    StoreError { source: Some(Arc::new(unopened)), ..StoreError::not_executed(kind, message) }
}

/// The server does not let this user hear notices. To keep locks it needs no such permission, so the rule is one of its own.
pub(crate) fn unheard(config: &RedisConfig, unopened: Unopened) -> StoreError {
    let text = match unopened.why {
        Broken::Refused(text) if text.starts_with("NOPERM") => text,
        why => return unreached(config, Unopened { why, ..unopened }),
    };
    let (user, text) = (config.login(), config.quoted(&text));
    let start = String::from_utf8_lossy(&config.keys().glob_start()).into_owned();
    let rule = format!("allow it with: ACL SETUSER {user} &{start}release:* +psubscribe");
    let message = format!("{config}: this user may not hear notices ({text}); {rule}");
    StoreError::not_executed(StoreErrorKind::Denied, message)
}

/// A connection broke with commands on it, or before they were sent.
pub(crate) fn cut(config: &RedisConfig, broken: Broken) -> StoreError {
    if matches!(broken, Broken::Unsent) {
        let message = format!("nothing was sent to {config}: {broken}");
        return StoreError::not_executed(StoreErrorKind::Unavailable, message);
    }
    let message = format!("the connection to {config} broke before it answered: {broken}");
    StoreError { source: Some(Arc::new(broken)), ..StoreError::unknown(message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Step;
    use Outcome::{NotExecuted, Unknown};
    use StoreErrorKind::{Denied, Unavailable, Unfit, Unready};

    fn config() -> RedisConfig {
        RedisConfig::from_url("redis://ann:s3cret@host").unwrap().0
    }

    #[test]
    fn refusals_are_judged_by_their_first_word() {
        for (text, kind, outcome) in [
            ("NOSCRIPT No matching script. Please use EVAL.", Unready, NotExecuted),
            ("LOADING Redis is loading the dataset in memory", Unready, NotExecuted),
            ("BUSY Redis is busy running a script.", Unready, NotExecuted),
            ("MASTERDOWN Link with MASTER is down", Unready, NotExecuted),
            ("CLUSTERDOWN The cluster is down", Unready, NotExecuted),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Unready, NotExecuted),
            ("NOREPLICAS Not enough good replicas to write.", Unready, NotExecuted),
            ("EXECABORT Transaction discarded", Unready, NotExecuted),
            ("MOVED 866 127.0.0.1:7001", Unfit, NotExecuted),
            ("ASK 866 127.0.0.1:7001", Unfit, NotExecuted),
            ("READONLY You can't write against a read only replica. script: x", Unfit, NotExecuted),
            ("MISCONF Redis is configured to save RDB snapshots", Unfit, NotExecuted),
            ("OOM command not allowed when used memory > 'maxmemory'.", Unfit, NotExecuted),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Unfit, NotExecuted),
            ("NOAUTH Authentication required.", Denied, NotExecuted),
            ("WRONGPASS invalid username-password pair", Denied, NotExecuted),
            ("NOPERM this user has no permissions to run the 'evalsha' command", Denied, NotExecuted),
            ("ERR The user executing the script can't run this command", Denied, Unknown),
            ("NOPERM ACL failure in script: User x has no permissions", Denied, Unknown),
            ("ERR Error running script: user_script:1: OOM", Unfit, Unknown),
            ("ERR max number of clients reached", Unready, NotExecuted),
            ("OOMPH", Unfit, Unknown),
            ("", Unfit, Unknown),
        ] {
            let error = refused(&config(), None, text);
            assert_eq!((error.kind, error.outcome), (kind, outcome), "{text}");
            assert_eq!(error.is_transient(), kind == Unready, "{text}");
            assert!(!error.to_string().contains("s3cret"));
        }
    }

    #[test]
    fn a_missing_permission_is_told_with_its_rule() {
        let advised = |text: &str| refused(&config(), None, text).to_string().contains("ACL SETUSER ann");
        assert!(advised("NOPERM this user has no permissions to run the 'evalsha' command"));
        assert!(advised("ERR The user executing the script can't run this command"));
        assert!(!advised("WRONGPASS invalid username-password pair"));
        assert!(!advised("OOM"));
    }

    #[test]
    fn the_lock_is_named() {
        let name = LockName::new("order:1").unwrap();
        let told = refused(&config(), Some(&name), "WRONGTYPE x").to_string();
        assert!(told.contains("\"order:1\"") && told.contains("redis://host:6379/0"), "{told}");
        let wrong = unreadable(&config(), Some(&name), Wrong::Nonsense("a list was expected"));
        assert_eq!((wrong.kind, wrong.outcome), (Unfit, Unknown));
    }

    #[test]
    fn broken_connection_is_judged_by_whether_the_call_was_sent() {
        let unopened = |why| unreached(&config(), Unopened { why, step: Step::Hello });
        let before = unopened(Broken::closed());
        assert_eq!((before.kind, before.outcome), (Unavailable, NotExecuted));
        assert!(before.message.ends_with("broken pipe while logging in (HELLO)"), "{before}");
        let after = cut(&config(), Broken::closed());
        assert_eq!((after.kind, after.outcome), (Unavailable, Unknown));
        let late = cut(&config(), Broken::Unsent);
        assert_eq!((late.kind, late.outcome), (Unavailable, NotExecuted));
        for (broken, kind) in [
            (Broken::Refused("WRONGPASS invalid username-password pair".to_owned()), Denied),
            (Broken::Refused("LOADING Redis is loading the dataset in memory".to_owned()), Unready),
            (Broken::Garbage("not RESP"), Unfit),
            (std::io::Error::other(rustls::Error::DecryptError).into(), Denied),
        ] {
            let error = unopened(broken);
            assert_eq!((error.kind, error.outcome), (kind, NotExecuted), "{error}");
        }
    }
}
