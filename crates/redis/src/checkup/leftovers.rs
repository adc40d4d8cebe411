//! Keys that begin as ours do and are none of ours, or would stay for ever. Looked at by SCAN, a bounded number of them.

use std::time::Duration;

use bandog_core::checkup::{Check, Remark, counted};

use super::latency::since;
use super::patient::Patient;
use super::words;
use crate::clock;
use crate::resp::Command;
use crate::value::Value;

pub(super) const KEYS: Check = Check::new(
    "keys",
    "every key of a lock ends by itself: one that does not is somebody else's, or was changed by hand; where it stands, the \
     lock of that name is refused or stays for ever",
);

const STEPS: usize = 100;
const STEP: u64 = 500;
const LOOKS: u64 = 5_000;
/// Keys of one step that are looked at.
const MOST: usize = 5_000;
const WITHIN: Duration = Duration::from_secs(1);
/// So many bytes a record has at least: its numbers, the first of which is its format. Texts begin with no such byte.
const OPENING: usize = 37;
/// So many are named.
const NAMED: usize = 3;

#[derive(Debug, Default)]
struct Found {
    looked: u64,
    whole: bool,
    endless: Vec<String>,
    foreign: Vec<String>,
}

pub(super) async fn keys(patient: &Patient<'_>) -> Remark {
    match scan(patient).await {
        Ok(found) => judge(&found, patient),
        Err(text) => {
            let remark = KEYS.unknown(words::refusal("looking at keys", &text));
            let is_forbidden = text.starts_with("NOPERM");
            remark.change(if is_forbidden {
                patient.allow("+scan +pttl +type +getrange")
            } else {
                words::remedy(&text).to_owned()
            })
        }
    }
}

async fn scan(patient: &Patient<'_>) -> Result<Found, String> {
    let (begin, glob) = (clock::now(), patient.config.keys().glob());
    let (mut found, mut cursor) = (Found::default(), b"0".to_vec());
    for _ in 0..STEPS {
        let step = Command::new("SCAN").arg(&cursor).arg("MATCH").arg(&glob).arg("COUNT").number(STEP);
        let keys;
        (cursor, keys) = read_step(patient.ask_one(step).await)?;
        look(patient, keys, &mut found).await?;
        if cursor == b"0" {
            found.whole = true;
            break;
        }
        if found.looked >= LOOKS || since(begin) >= WITHIN {
            break;
        }
    }
    Ok(found)
}

fn read_step(answer: Value) -> Result<(Vec<u8>, Vec<Vec<u8>>), String> {
    let parts = match answer {
        Value::Array(parts) => parts,
        Value::Error(text) => return Err(text),
        _ => Vec::new(),
    };
    let [Value::Bytes(cursor), Value::Array(keys)] = &parts[..] else { return Err("no step of a scan".to_owned()) };
    let key = |value: &Value| match value {
        Value::Bytes(key) => Some(key.clone()),
        _ => None,
    };
    Ok((cursor.clone(), keys.iter().filter_map(key).collect()))
}

async fn look(patient: &Patient<'_>, mut keys: Vec<Vec<u8>>, found: &mut Found) -> Result<(), String> {
    // No step of a server brings more; whatever answers so is not asked for all of them.
    keys.truncate(MOST);
    if keys.is_empty() {
        return Ok(());
    }
    let ask = |word: &str, key: &[u8]| Command::new(word).arg(key);
    let questions = keys.iter().flat_map(|key| [ask("PTTL", key), ask("TYPE", key)]).collect();
    let answers = patient.ask(questions).await;
    let texts = keys.iter().zip(answers.chunks(2)).filter(|(_, pair)| is_text(&pair[1])).map(|(key, _)| key);
    let opening = |key: &Vec<u8>| ask("GETRANGE", key).number(0).number(OPENING as u64 - 1);
    let mut openings = patient.ask(texts.map(opening).collect()).await.into_iter();
    for (key, pair) in keys.iter().zip(answers.chunks(2)) {
        let ours = match &pair[1] {
            kind if is_text(kind) => openings.next().map_or(Ok(false), |opening| is_record(&opening))?,
            kind => matches!(kind, Value::Bytes(kind) if kind == b"hash"),
        };
        match pair {
            [Value::Error(text), _] | [_, Value::Error(text)] => return Err(text.clone()),
            // Gone meanwhile.
            [Value::Int(-2), _] => continue,
            [_, Value::Bytes(kind)] if !ours => found.foreign.push(shown(key, kind)),
            [Value::Int(-1), Value::Bytes(kind)] => found.endless.push(shown(key, kind)),
            _ => {}
        }
        found.looked += 1;
    }
    Ok(())
}

fn is_text(kind: &Value) -> bool {
    matches!(kind, Value::Bytes(kind) if kind == b"string")
}

/// Whether a string begins as a lock that nobody waits for does, or has gone meanwhile.
fn is_record(opening: &Value) -> Result<bool, String> {
    match opening {
        Value::Bytes(opening) => Ok(opening.is_empty() || (opening.len() == OPENING && opening[0] < 32)),
        // It has become something else meanwhile: a lock that somebody waits for, most likely.
        Value::Error(text) if text.starts_with("WRONGTYPE") => Ok(true),
        Value::Error(text) => Err(text.clone()),
        _ => Ok(false),
    }
}

fn shown(key: &[u8], kind: &[u8]) -> String {
    let key: String = String::from_utf8_lossy(key).escape_debug().take(60).collect();
    format!("{key} ({})", words::text(kind))
}

/// Some of them, and how many more there are.
fn named(keys: &[String]) -> String {
    let some = keys.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = keys.len().saturating_sub(NAMED);
    if more == 0 { some } else { format!("{some} and {more} more") }
}

fn judge(found: &Found, patient: &Patient<'_>) -> Remark {
    let Found { looked, whole, endless, foreign } = found;
    let extent = if *whole { "all" } else { "not all" };
    let prefix = &patient.config.prefix;
    let looked = counted(*looked, "key");
    let saw = format!("looked at {looked} under {prefix:?}, {extent} of them");
    if endless.is_empty() && foreign.is_empty() {
        return KEYS.fine(format!("{saw}; each ends by itself"));
    }
    let parts = [("no lock", foreign), ("without an end", endless)];
    let parts =
        parts.iter().filter(|(_, keys)| !keys.is_empty()).map(|(what, keys)| format!("{what}: {}", named(keys)));
    let change = "?prefix=bandog: in the URL of every client; or remove those keys, if nobody needs them (UNLINK)";
    KEYS.risky(format!("{saw}; {}", parts.collect::<Vec<_>>().join("; "))).change(change)
}
