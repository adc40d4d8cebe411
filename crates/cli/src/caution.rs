//! What the client of a store warns of in its log is told on standard error: a server that may evict locks, nonsense from a server.
//!
//! The `bandog` crate has warnings too; those are about holds, and the command has words of its own for them.

use std::fmt;

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::say::{self, write_wrapped};
use crate::screen::harmless;

/// The targets that are told.
const STORE: &str = "bandog_redis";

/// Tells warnings from here on, each as it comes; `json` as an object.
pub(crate) fn tell(json: bool) {
    // Somebody else's subscriber stays: then it has them.
    let _ = tracing::subscriber::set_global_default(Teller { json });
}

struct Teller {
    json: bool,
}

impl Subscriber for Teller {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with(STORE)
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        say(&text.0, self.json);
    }

    // Spans are not told.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The message of an event, without its fields.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Says a warning.
pub(crate) fn say(text: &str, json: bool) {
    match json {
        true => say::write(&format!("{}\n", json!({ "event": "warning", "lock": null, "message": text }))),
        false => write_wrapped(&format!("{}: warning: {}", say::name(), harmless(text))),
    }
}
