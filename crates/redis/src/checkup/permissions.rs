//! Whether this user may do all that locks need: every command, key and channel is tried, as at connect.

use bandog_core::checkup::{Check, Remark};

use super::patient::{Patient, command};
use super::said::Said;
use super::words;
use crate::config::RedisConfig;
use crate::script::Script;
use crate::topology::{load, probe, rule};
use crate::value::Value;

pub(super) const PERMISSIONS: Check =
    Check::new("permissions", "a client that may not do all of it cannot connect, or fails when it hands a lock on");

pub(super) async fn permissions(patient: &Patient<'_>, said: &Said) -> Remark {
    let config = patient.config;
    let mut commands = vec![command(&["TIME"]), load(Script::Peek), command(&["INFO", "server"])];
    // The script with all the others in it comes first of these.
    let scripted = commands.len();
    commands.extend(probe(config));
    let answers = patient.ask(commands).await;
    let mut refusals: Vec<&str> = answers.iter().filter_map(forbidden).collect();
    refusals.dedup();
    let mut missing: Vec<String> = refusals.iter().map(|text| subject(config, text)).collect();
    if let Some(Value::Array(words)) = answers.get(scripted) {
        missing.extend(words.iter().filter_map(word));
    }
    let us = config.login();
    let unclear = answers.iter().find_map(|answer| match answer {
        Value::Error(text) if forbidden(answer).is_none() && !text.starts_with("NOSCRIPT") => Some(text),
        _ => None,
    });
    match (missing.is_empty(), unclear) {
        (false, _) => {
            let saw = format!("{us} may not use {}", missing.join(", "));
            PERMISSIONS.wrong(saw).change(rule_line(config, &refusals.join("\n")))
        }
        (true, Some(text)) => {
            let saw = format!("not all could be tried ({})", words::plain(text));
            PERMISSIONS.unknown(saw).change(words::remedy(text))
        }
        (true, None) => PERMISSIONS.fine(format!("{us} may do all that locks need{}", said.without_settings())),
    }
}

/// The line that allows all of it.
pub(super) fn rule_line(config: &RedisConfig, refusals: &str) -> String {
    let rule = rule(config, refusals);
    rule.strip_prefix("allow it with: ").unwrap_or(&rule).to_owned()
}

fn forbidden(answer: &Value) -> Option<&str> {
    match answer {
        Value::Error(text) if text.starts_with("NOPERM") || text.contains("user executing the script") => Some(text),
        _ => None,
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(word) => Some(words::text(word).to_lowercase()),
        _ => None,
    }
}

/// What a refusal is about: the keys, the channels, or the command that it names between quotes.
fn subject(config: &RedisConfig, text: &str) -> String {
    let prefix = &config.prefix;
    if text.contains(" channel") {
        return format!("the channels {prefix}inbox:*");
    }
    if text.contains(" key") {
        return format!("the keys {prefix}*");
    }
    match text.split('\'').nth(1) {
        Some(command) => command.to_owned(),
        None => words::plain(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_by_what_they_are_about() {
        let config = RedisConfig::from_url("redis://ann:pw@host?prefix=a:").unwrap().0;
        for (text, told) in [
            ("NOPERM this user has no permissions to run the 'script|load' command", "script|load"),
            ("NOPERM User ann has no permissions to access one of the keys used as arguments", "the keys a:*"),
            (
                "NOPERM this user has no permissions to access one of the channels used as arguments",
                "the channels a:inbox:*",
            ),
            ("NOPERM no", "NOPERM no"),
        ] {
            assert_eq!(subject(&config, text), told);
        }
        assert!(rule_line(&config, "NOPERM x").starts_with("ACL SETUSER ann +eval "));
    }
}
