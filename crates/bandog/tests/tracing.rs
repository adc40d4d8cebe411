//! The log: nothing at info while all is well, everything at debug, and always with the same fields. See docs/events.md.

#![allow(clippy::unwrap_used, reason = "parts of tests")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use bandog::{Fault, LockConfig, OpKind, Owner};
use common::{World, ms, secs};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

type Fields = BTreeMap<&'static str, String>;

/// A line, or a span that has ended.
#[derive(Debug, Clone)]
struct Entry {
    level: Level,
    target: &'static str,
    /// The span's name, or the line's message.
    what: String,
    span: bool,
    fields: Fields,
    /// The span it stands in.
    inside: Option<&'static str>,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Entry>>>);

/// For the whole process: half of the lines come from bandog's own threads. Tests tell theirs by the name of the lock.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(log.clone())).unwrap();
    log
});

impl Log {
    /// Everything about one lock so far.
    fn about(lock: &str) -> Vec<Entry> {
        let all = LOG.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|entry| entry.fields.get("lock").is_some_and(|known| known == lock)).cloned().collect()
    }

    fn begin() {
        LazyLock::force(&LOG);
    }
}

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Reader(&mut fields));
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(&mut Reader(span.extensions_mut().get_mut().unwrap()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let fields = span.extensions_mut().remove().unwrap();
        let (metadata, inside) = (span.metadata(), span.parent().map(|parent| parent.name()));
        let what = metadata.name().to_owned();
        let entry = Entry { level: *metadata.level(), target: metadata.target(), what, span: true, fields, inside };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let (metadata, mut fields) = (event.metadata(), Fields::new());
        event.record(&mut Reader(&mut fields));
        let what = fields.remove("message").unwrap_or_default();
        let inside = context.event_span(event).map(|span| span.name());
        let entry = Entry { level: *metadata.level(), target: metadata.target(), what, span: false, fields, inside };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}

fn whats(entries: &[Entry], at: Level) -> Vec<&str> {
    entries.iter().filter(|entry| entry.level == at && !entry.span).map(|entry| entry.what.as_str()).collect()
}

#[tokio::test]
async fn a_healthy_lock_says_nothing_at_info() {
    Log::begin();
    for world in World::both() {
        let (locks, me) = (world.locks(), Owner::new());
        let outer = locks.mutex("healthy").owner(&me).reentrant().acquire().await.unwrap();
        drop(locks.mutex("healthy").owner(&me).reentrant().acquire().await.unwrap());
        assert!(locks.mutex("healthy").try_acquire().await.unwrap().is_none());
        let next = tokio::spawn(locks.mutex("healthy").acquire());
        world.pass(secs(60)).await;
        outer.release().await.unwrap();
        let guard = next.await.unwrap().unwrap();
        guard.renew().await.unwrap();
        drop(guard);
        world.settle().await;
    }
    let loud: Vec<Entry> = Log::about("healthy").into_iter().filter(|entry| entry.level <= Level::INFO).collect();
    assert!(loud.is_empty(), "{loud:?}");
}

#[tokio::test]
async fn at_debug_every_phase_is_there_with_its_fields() {
    Log::begin();
    for (world, lock) in World::both().into_iter().zip(["near", "far"]) {
        let (locks, other) = (world.locks(), world.locks());
        let held = other.mutex(lock).acquire().await.unwrap();
        let next = tokio::spawn(locks.mutex(lock).acquire());
        world.settle().await;
        drop(held);
        let guard = next.await.unwrap().unwrap();
        let (token, holder) = (guard.token().to_string(), guard.hold().holder().unwrap().to_string());
        world.pass(secs(25)).await;
        drop(guard);
        world.settle().await;

        let log = Log::about(lock);
        assert!(log.iter().all(|entry| entry.target == "bandog"), "{log:?}");
        let ours = |entry: &&Entry| entry.fields.get("token") == Some(&token);
        let lines: Vec<&Entry> = log.iter().filter(ours).filter(|entry| !entry.span).collect();
        let phases: Vec<&str> = lines.iter().map(|line| line.fields["phase"].as_str()).collect();
        assert_eq!(phases, ["acquire", "renew", "renew", "release"], "{lines:?}");
        assert!(lines.iter().all(|line| line.fields["holder"] == holder && line.level == Level::DEBUG), "{lines:?}");
        assert_eq!(
            lines.iter().map(|line| line.inside).collect::<Vec<_>>(),
            [Some("acquire"), Some("hold"), Some("hold"), Some("hold")]
        );
        assert!(log.iter().any(|line| line.fields.get("phase").is_some_and(|phase| phase == "wait")), "{log:?}");

        let spans: Vec<&Entry> = log.iter().filter(ours).filter(|entry| entry.span).collect();
        assert_eq!(spans.iter().map(|span| span.what.as_str()).collect::<Vec<_>>(), ["acquire", "hold"]);
        for (field, value) in [("lock", lock), ("mode", "exclusive"), ("phase", "hand_off"), ("holder", &holder)] {
            assert_eq!(spans[0].fields[field], value);
        }
        assert!(spans[0].fields["store"].contains("memory:"), "{spans:?}");
        assert_eq!(spans[1].fields["holder"], holder);
    }
}

#[tokio::test]
async fn failures_are_logged_at_a_level_that_fits_them() {
    Log::begin();
    let world = World::near();
    let alerting = LockConfig::builder().alert_wait(ms(1)).build().unwrap();
    let locks = world.locks();
    let guard = locks.mutex("wrong").acquire().await.unwrap();
    let waits = tokio::spawn(locks.mutex("wrong").config(&alerting).acquire());
    world.store.inject(OpKind::Renew, Fault::Refuse, u32::MAX);
    world.pass(ms(29_900)).await;
    world.store.heal();
    drop(guard);
    world.pass(secs(60)).await;
    drop(waits.await.unwrap().unwrap());
    let log = Log::about("wrong");
    assert_eq!(whats(&log, Level::INFO), ["uncertain"], "once, not at every failed attempt");
    let warned = whats(&log, Level::WARN);
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(warned[0].starts_with("alert: waited") && warned[1].starts_with("lost: "), "{warned:?}");
    assert!(whats(&log, Level::DEBUG).contains(&"a renewal failed"));
    let lost = log.iter().find(|line| line.what.starts_with("lost")).unwrap();
    assert_eq!((lost.fields["reason"].as_str(), lost.inside), ("unreachable", Some("hold")));
}

#[tokio::test]
async fn an_ask_that_comes_to_nothing_says_so_in_its_span() {
    Log::begin();
    let world = World::near();
    let locks = world.locks();
    let held = locks.mutex("denied").acquire().await.unwrap();
    let late = tokio::spawn(locks.mutex("denied").wait(secs(1)).acquire());
    world.pass(secs(2)).await;
    late.await.unwrap().unwrap_err();
    drop(common::waiting(locks.mutex("denied").acquire()));
    let asked: Vec<Entry> = Log::about("denied").into_iter().filter(|entry| entry.what == "acquire").collect();
    let phases: Vec<&str> = asked.iter().map(|span| span.fields["phase"].as_str()).collect();
    assert_eq!(phases, ["at_once", "timeout", "cancelled"]);
    drop(held);
}
