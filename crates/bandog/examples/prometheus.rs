//! Metrics for Prometheus and a readiness probe, on one port of a service. Takes two seconds, needs no server; it calls
//! itself. With `--serve` it goes on taking locks, so that `contrib/` can be tried with it.
//!
//! ```sh
//! cargo run -p bandog --example prometheus [--serve] [URL OF A STORE]
//! curl http://127.0.0.1:PORT/metrics    # for Prometheus
//! curl http://127.0.0.1:PORT/ready      # for whoever sends requests to the service: 200 or 503
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use bandog::{Event, Events, Guard, LockConfig, Locks};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PERIOD: Duration = Duration::from_millis(50);
const LEASE: Duration = Duration::from_millis(900);

#[tokio::main]
async fn main() -> Outcome<()> {
    let (flags, urls): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument == "--serve");
    let url = urls.into_iter().next().unwrap_or_else(|| "memory:prometheus".to_owned());
    let stage = Stage::open(&url).await?;
    println!("http://{0}/metrics and http://{0}/ready", stage.at);
    loop {
        stage.play().await?;
        if flags.is_empty() {
            break;
        }
    }
    stage.rounds(1).await;
    let (_, metrics) = call(stage.at, "/metrics").await?;
    let few = ["bandog_grants_total{", "bandog_losses_total{reason=\"revoked\"", "bandog_connection_up{"];
    metrics.lines().filter(|line| few.iter().any(|head| line.starts_with(head))).for_each(|line| println!("{line}"));
    println!("/ready: {:?}", call(stage.at, "/ready").await?);
    stage.ann.shutdown().await?;
    println!("/ready: {:?}", call(stage.at, "/ready").await?);
    Ok(())
}

// docs/deployment.md has these lines.
const SECONDS: &[f64] =
    &[0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
const WAITERS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0];

/// Without buckets the exporter makes summaries, which cannot be added up over instances.
fn exporter() -> Outcome<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new();
    for name in ["wait", "hold", "round_trip", "watchdog_run"] {
        builder = builder.set_buckets_for_metric(Matcher::Full(format!("bandog_{name}_seconds")), SECONDS)?;
    }
    builder = builder.set_buckets_for_metric(Matcher::Full("bandog_queue_length".to_owned()), WAITERS)?;
    Ok(builder.install_recorder()?)
}

/// What is known, as the watchdog last saw it: no request is made for it.
async fn ready(State(locks): State<Locks>) -> (StatusCode, String) {
    let health = locks.health();
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, health.to_string())
}
// Up to here.

/// A service with its port, and a second client that competes with it.
pub(crate) struct Stage {
    pub(crate) at: SocketAddr,
    pub(crate) ann: Locks,
    bob: Locks,
}

impl Stage {
    /// Once in a process: there is one recorder.
    pub(crate) async fn open(url: &str) -> Outcome<Self> {
        let exporter = exporter()?;
        let (ann, bob) = (client(url, "ann").await?, client(url, "bob").await?);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let at = listener.local_addr()?;
        let upkeep = exporter.clone();
        let metrics = get(move || async move { exporter.render() });
        let app = Router::new().route("/metrics", metrics).route("/ready", get(ready)).with_state(ann.clone());
        tokio::spawn(axum::serve(listener, app).into_future());
        // What was observed is summed up here too, should nobody scrape.
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_secs(5)).await;
                upkeep.run_upkeep();
            }
        });
        Ok(Self { at, ann, bob })
    }

    /// Every way to get a lock, and some ways not to.
    pub(crate) async fn play(&self) -> Outcome<()> {
        let Self { ann, bob, .. } = self;
        drop(ann.rwlock("prices").read().acquire().await?);
        drop(ann.semaphore("gpu", 2).acquire().await?);

        // Granted at once; its next holder is in this process, and the one after that is not.
        let first = ann.mutex("job").lease(LEASE).acquire().await?;
        let second = queued(ann, ann.events()).await;
        first.release().await?;
        let second = second.await??;
        assert!(bob.mutex("job").try_acquire().await?.is_none(), "busy");
        assert!(bob.mutex("job").wait(PERIOD).acquire().await.is_err(), "timed out");
        let third = queued(bob, bob.events()).await;
        second.release().await?;
        let third = third.await??;

        // Longer than its lease: it is renewed. Then somebody wants it back.
        sleep(LEASE).await;
        ann.revoke("job", "maintenance").await?;
        println!("bob: {}", third.lost().await);
        Ok(())
    }

    /// Lets the watchdog go so many rounds.
    pub(crate) async fn rounds(&self, count: u64) {
        let enough = self.ann.health().rounds + count;
        while self.ann.health().rounds < enough {
            sleep(PERIOD / 5).await;
        }
    }
}

async fn client(url: &str, label: &str) -> Outcome<Locks> {
    // Five seconds, the default, are right for a service; this is over sooner.
    let config = LockConfig::builder().watchdog_period(PERIOD).build()?;
    Ok(Locks::builder().defaults(config).label(label).connect(url).await?)
}

type Acquired = tokio::task::JoinHandle<Result<Guard, bandog::AcquireError>>;

/// Asks for the lock, and returns when it has to wait.
async fn queued(locks: &Locks, mut events: Events) -> Acquired {
    let asked = tokio::spawn(locks.mutex("job").lease(LEASE).acquire());
    while !matches!(events.next().await, None | Some(Event::Waiting { .. })) {}
    asked
}

/// One request, by hand; its status and body.
pub(crate) async fn call(at: SocketAddr, path: &str) -> Outcome<(u16, String)> {
    let mut stream = TcpStream::connect(at).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).ok_or("no status")?.parse()?;
    let body = answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned());
    Ok((status, body))
}
