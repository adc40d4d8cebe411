//! A web handler under a lock: one payment of an order at a time, wherever the request comes in. Takes a moment, needs no
//! server of locks; it calls itself. With `--serve` it stays up for your own requests.
//!
//! ```sh
//! cargo run -p bandog --example axum [--serve] [URL OF A STORE]
//! curl -X POST http://127.0.0.1:PORT/orders/1001/pay
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bandog::{AcquireError, Locks, RunError, locked};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let (flags, urls): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument == "--serve");
    let url = urls.into_iter().next().unwrap_or_else(|| "memory:".to_owned());
    if flags.is_empty() {
        println!("{}", tell(&url).await?);
        return Ok(());
    }
    let (listener, locks) = (TcpListener::bind("127.0.0.1:0").await?, Locks::connect(&url).await?);
    println!("listening on {}: POST /orders/ID/pay takes three seconds", listener.local_addr()?);
    Ok(axum::serve(listener, app(Shop { locks, bank: Arc::new(Bank::Slow) })).await?)
}

fn app(shop: Shop) -> Router {
    Router::new().route("/orders/{id}/pay", post(pay)).with_state(shop)
}

#[derive(Clone)]
struct Shop {
    locks: Locks,
    bank: Arc<Bank>,
}

/// Busy is an error at once, so nobody pays twice by pressing twice. The client may come back later.
#[locked("order:{id}", locks = shop.locks, lease = "10s", max_hold = "1m", hold = hold)]
async fn pay(State(shop): State<Shop>, Path(id): Path<u64>) -> Result<Json<Value>, PayError> {
    shop.bank.charge().await;
    Ok(Json(json!({ "paid": id, "token": hold.token().to_string() })))
}

struct PayError(RunError);

impl From<RunError> for PayError {
    fn from(error: RunError) -> Self {
        Self(error)
    }
}

impl IntoResponse for PayError {
    fn into_response(self) -> Response {
        let (status, body) = match &self.0 {
            RunError::Acquire(AcquireError::Busy { place, holder }) => {
                let holder = holder.as_ref().map(|by| json!({ "id": by.holder.to_string(), "on": by.who.to_string() }));
                (StatusCode::CONFLICT, json!({ "error": "busy", "lock": place.lock.to_string(), "holder": holder }))
            }
            // Lost, or no answer from the store: whether it was paid, the token will tell.
            error => {
                (StatusCode::SERVICE_UNAVAILABLE, json!({ "error": error.kind().as_str(), "why": error.to_string() }))
            }
        };
        (status, Json(body)).into_response()
    }
}

/// Something slow. In the story it says when a payment has begun and waits until it may end.
enum Bank {
    Slow,
    Staged { begun: Semaphore, may_end: Semaphore },
}

impl Bank {
    async fn charge(&self) {
        match self {
            Self::Slow => tokio::time::sleep(Duration::from_secs(3)).await,
            Self::Staged { begun, may_end } => {
                begun.add_permits(1);
                if let Ok(permit) = may_end.acquire().await {
                    permit.forget();
                }
            }
        }
    }

    async fn has_begun(&self) {
        if let Self::Staged { begun, .. } = self
            && let Ok(permit) = begun.acquire().await
        {
            permit.forget();
        }
    }

    fn end(&self) {
        if let Self::Staged { may_end, .. } = self {
            may_end.add_permits(1);
        }
    }
}

/// Serves on a free port and calls itself: a payment, a second one meanwhile, and one whose lock is revoked.
pub(crate) async fn tell(url: &str) -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    let locks = Locks::connect(url).await?;
    let bank = Arc::new(Bank::Staged { begun: Semaphore::new(0), may_end: Semaphore::new(0) });
    let serves =
        tokio::spawn(axum::serve(listener, app(Shop { locks: locks.clone(), bank: Arc::clone(&bank) })).into_future());

    let first = tokio::spawn(call(at, 1001));
    bank.has_begun().await;
    let (busy, _) = call(at, 1001).await?;
    bank.end();
    let (paid, _) = first.await??;

    let third = tokio::spawn(call(at, 1002));
    bank.has_begun().await;
    locks.revoke("order:1002", "deploying").await?;
    let (lost, _) = third.await??;

    serves.abort();
    locks.shutdown().await?;
    Ok(format!("paid: {paid}, at the same time: {busy}, revoked: {lost}."))
}

/// One request, by hand; its status and body.
async fn call(at: SocketAddr, id: u64) -> Outcome<(u16, String)> {
    let mut stream = TcpStream::connect(at).await?;
    let request =
        format!("POST /orders/{id}/pay HTTP/1.1\r\nhost: {at}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).ok_or("no status")?.parse()?;
    let body = answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned());
    println!("POST /orders/{id}/pay  {status}  {body}");
    Ok((status, body))
}
