//! What the server says about itself: INFO, and the settings that CONFIG shows. The judgements read it and ask nothing more.
//!
//! Either may be forbidden, or renamed by whoever runs the server: then what it would have said is not known.

use std::collections::HashMap;

use bandog_core::checkup::{Check, Remark};

use super::patient::{Patient, allow, command};
use super::words;
use crate::value::Value;

/// The settings that matter to locks.
const SETTINGS: &[&str] = &[
    "maxmemory",
    "maxmemory-policy",
    "save",
    "appendonly",
    "appendfsync",
    "stop-writes-on-bgsave-error",
    "min-replicas-to-write",
    "timeout",
    "maxclients",
    "bind",
    "protected-mode",
    "client-output-buffer-limit",
];

/// For what a server does not tell, whoever asks: its commands are renamed or removed, or a service hides them.
const LOOK: &str = "look for it where the server is configured: redis.conf, or the settings of the service";

#[derive(Debug, Default)]
pub(super) struct Said {
    info: HashMap<String, String>,
    settings: HashMap<String, String>,
    /// The refusals of INFO and CONFIG, and what would allow them.
    no_info: Option<Gap>,
    no_config: Option<Gap>,
}

/// Something that the server does not tell.
#[derive(Debug, Clone)]
struct Gap {
    why: String,
    is_silence: bool,
    change: String,
}

impl Said {
    pub(super) async fn ask(patient: &Patient<'_>) -> Self {
        // Before Redis 7.0 one pattern at a time.
        let settings = SETTINGS.iter().map(|setting| command(&["CONFIG", "GET", setting]));
        let mut answers = patient.ask([command(&["INFO"])].into_iter().chain(settings).collect()).await.into_iter();
        let gap = |word: &str, rule: &str, text: &str| {
            let change = match text {
                text if text.starts_with("NOPERM") => allow(patient.config, rule),
                text if text.starts_with("ERR") => LOOK.to_owned(),
                text => words::remedy(text).to_owned(),
            };
            Some(Gap { why: words::refusal(word, text), is_silence: text.starts_with(words::LOST), change })
        };
        let mut said = Self::default();
        match answers.next() {
            Some(Value::Bytes(text)) => said.info = read_info(&String::from_utf8_lossy(&text)),
            Some(Value::Error(text)) => said.no_info = gap("INFO", "+info", &text),
            _ => {}
        }
        for answer in answers {
            match answer {
                Value::Error(text) => said.no_config = gap("CONFIG GET", "+config|get", &text),
                answer => said.settings.extend(read_pair(answer)),
            }
        }
        said
    }

    /// Why the very first question had no answer: then nobody is there.
    pub(super) fn silence(&self) -> Option<&str> {
        let gap = self.no_info.as_ref().filter(|gap| gap.is_silence);
        gap.map(|gap| gap.why.as_str())
    }

    /// A field of INFO.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.info.get(name).map(String::as_str)
    }

    /// A number in INFO.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// A setting.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// A setting that is a number.
    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }

    /// What is said where INFO does not tell what a check needs.
    pub(super) fn no_info(&self, check: Check) -> Remark {
        gap(check, self.no_info.as_ref(), "INFO does not tell it")
    }

    /// What is said where the settings do not tell what a check needs.
    pub(super) fn no_setting(&self, check: Check) -> Remark {
        gap(check, self.no_config.as_ref(), "CONFIG GET does not tell it")
    }

    /// The note that a remark carries when it was made without the settings.
    pub(super) fn without_settings(&self) -> &'static str {
        if self.no_config.is_some() { " (CONFIG GET is refused, so this is from INFO alone)" } else { "" }
    }
}

fn gap(check: Check, gap: Option<&Gap>, otherwise: &str) -> Remark {
    match gap {
        Some(gap) => check.unknown(gap.why.clone()).change(gap.change.clone()),
        None => check.unknown(otherwise).change(LOOK),
    }
}

fn read_info(text: &str) -> HashMap<String, String> {
    let fields = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

// A list in RESP2; the newer protocol has a map for it, which the connection gives us flat.
fn read_pair(answer: Value) -> Option<(String, String)> {
    let Value::Array(items) = answer else { return None };
    match &items[..] {
        [Value::Bytes(name), Value::Bytes(value)] => Some((words::text(name), words::text(value))),
        _ => None,
    }
}

#[cfg(test)]
impl Said {
    /// A server that says this, as tests want it: fields of INFO, settings.
    pub(super) fn of(info: &[(&str, &str)], settings: &[(&str, &str)]) -> Self {
        let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Self { info: owned(info), settings: owned(settings), ..Self::default() }
    }
}
