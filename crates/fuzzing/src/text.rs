//! What people type: URLs, files, tickets, names and patterns. None of it panics, and what is read is written as it was.

use bandog::{LockName, Pattern, Ticket};
use bandog_postgres::PostgresConfig;
use bandog_redis::RedisConfig;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// A URL of any store.
///
/// # Panics
/// When what is shown of a Redis URL leads elsewhere.
pub fn url(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = bandog_cli::fuzzing::url(text);
    if let Ok((config, _)) = RedisConfig::from_url(text) {
        let _ = format!("{config} {config:?}");
    }
    if let Ok((config, _)) = PostgresConfig::from_url(text) {
        let shown = config.to_string();
        let again = PostgresConfig::from_url(&shown).map(|(config, _)| config.to_string());
        assert!(again.is_ok_and(|again| again == shown), "{shown} leads elsewhere");
    }
}

/// The configuration file of the command.
pub fn config(data: &[u8]) {
    if let Some(text) = text(data) {
        let _ = bandog_cli::fuzzing::config(text);
    }
}

/// A ticket: its text, and what stands in it behind the checksum.
///
/// # Panics
/// When the text of one that was read is another ticket, or its debug output releases it.
pub fn ticket(data: &[u8]) {
    if let Some(secret) = bandog::fuzzing::ticket(data) {
        let ticket: Ticket = secret.parse().expect("what is written can be read");
        assert_eq!(ticket.secret(), secret);
        // A name may have the same digits by itself.
        let digits = &secret[8..40];
        assert!(ticket.name().contains(digits) || !format!("{ticket:?}").contains(digits));
    }
    let Some(ticket) = text(data).and_then(|text| text.parse::<Ticket>().ok()) else { return };
    let again = ticket.secret().parse::<Ticket>();
    assert!(again == Ok(ticket.clone()), "{ticket:?} is written as {again:?}");
}

/// The name of a lock.
///
/// # Panics
/// When a name is shown as another.
pub fn name(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match LockName::new(text) {
        Ok(name) => {
            assert_eq!(name.as_str(), text);
            assert_eq!(LockName::new(name.as_str()).as_ref(), Ok(&name));
            let _ = format!("{name:?}");
        }
        Err(error) => drop(error.to_string()),
    }
}

/// A pattern and, behind the first byte of zero, what it is to match.
///
/// # Panics
/// When a text without any special character does not match itself, or `*` does not match.
pub fn pattern(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let (glob, subject) = text.split_once('\0').unwrap_or((text, text));
    let is_plain = !glob.contains(['*', '?', '[', ']', '\\']);
    match Pattern::new(glob) {
        Ok(pattern) => {
            let matched = pattern.matches(subject);
            assert!(!is_plain || matched == (glob == subject), "{glob:?} of {subject:?}: {matched}");
        }
        Err(error) => {
            assert!(!is_plain, "{glob:?}: {error}");
        }
    }
    let all = Pattern::new("*").is_ok_and(|pattern| pattern.matches(subject));
    assert!(all, "* of {subject:?}");
}
