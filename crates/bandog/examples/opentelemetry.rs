//! The spans of a lock in OpenTelemetry: who waited for whom, how long it was held, when it was renewed.
//! Takes about a second, needs no server and no collector.
//!
//! ```sh
//! cargo run --example opentelemetry -p bandog
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bandog::{Locks, MemoryStore};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tokio::time::sleep;
use tracing::Instrument as _;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

const LEASE: Duration = Duration::from_millis(600);

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", story()?);
    Ok(())
}

/// Two services pay one order, and what a collector would show of it.
pub(crate) fn story() -> Result<String, Box<dyn Error>> {
    let spans = Spans::default();
    // In a service the exporter is that of your collector, and the processor one that sends in batches.
    let provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    // The spans of bandog are at debug.
    let layer = layer.with_filter(LevelFilter::DEBUG);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(pay_twice())?;
    provider.shutdown()?;
    Ok(spans.tree())
}

async fn pay_twice() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let (ann, bob) = (client(&store, "ann")?, client(&store, "bob")?);
    let first = pay(&ann, LEASE).instrument(tracing::info_span!("ann pays"));
    // Comes a little later, and has to wait.
    let second = async {
        sleep(LEASE / 4).await;
        pay(&bob, LEASE / 4).instrument(tracing::info_span!("bob pays")).await
    };
    let (first, second) = tokio::join!(first, second);
    first.and(second)
}

fn client(store: &MemoryStore, label: &str) -> Result<Locks, Box<dyn Error>> {
    Ok(Locks::builder().store(store.clone()).label(label).build()?)
}

async fn pay(locks: &Locks, takes: Duration) -> Result<(), Box<dyn Error>> {
    let guard = locks.mutex("order:1001").lease(LEASE).acquire().await?;
    sleep(takes).await;
    guard.release().await?;
    Ok(())
}

/// Keeps the spans that have ended, in place of a collector.
#[derive(Debug, Clone, Default)]
struct Spans(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

impl Spans {
    fn tree(&self) -> String {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        spans.sort_by_key(|span| span.start_time);
        let mut text = String::new();
        for root in spans.iter().filter(|span| !spans.iter().any(|other| is_child(span, other))) {
            show(root, &spans, 0, &mut text);
        }
        text
    }
}

fn is_child(span: &SpanData, of: &SpanData) -> bool {
    span.parent_span_id == of.span_context.span_id()
}

fn show(span: &SpanData, spans: &[SpanData], depth: usize, text: &mut String) {
    const FIELDS: [&str; 6] = ["lock", "store", "mode", "phase", "token", "holder"];
    let fields = span.attributes.iter().filter(|field| FIELDS.contains(&field.key.as_str()));
    let fields: Vec<String> = fields.map(|field| format!("{}={}", field.key, field.value)).collect();
    let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
    let indent = depth * 2;
    let _ = writeln!(text, "{:indent$}{} {:.0?} {}", "", span.name, took, fields.join(" "));
    for event in span.events.iter() {
        let _ = writeln!(text, "{:indent$}  · {}", "", event.name);
    }
    for child in spans.iter().filter(|child| is_child(child, span)) {
        show(child, spans, depth + 1, text);
    }
}
