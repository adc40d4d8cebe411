//! A job that several hosts are to start at the same time and one of them is to run. Takes a moment, needs no server.
//!
//! Every host has a clock of its own, a little behind the next one's. Whoever comes first runs the job; it is over in no time, but its
//! lock stays for a while, so that a host that comes later finds it taken and skips.
//!
//! ```sh
//! cargo run -p bandog --example scheduler [URL OF A STORE]
//! ```

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bandog::{Locks, RunError, locked};
use tokio::time::sleep;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const HOSTS: u32 = 3;
const TICKS: u32 = 4;
const BETWEEN_TICKS: Duration = Duration::from_millis(100);
/// How far the clock of each host is behind the one before.
const BEHIND: Duration = Duration::from_millis(15);

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:scheduler".to_owned());
    println!("{}", tell(&url).await?);
    Ok(())
}

/// Lets the hosts work through all ticks; says how it ended.
pub(crate) async fn tell(url: &str) -> Outcome<String> {
    let runs = Arc::new(AtomicU32::new(0));
    let mut hosts = Vec::new();
    for host in 0..HOSTS {
        let (locks, runs) = (Locks::connect(url).await?, Arc::clone(&runs));
        hosts.push(tokio::spawn(async move {
            sleep(BEHIND * host).await;
            for tick in 0..TICKS {
                match report(&locks, tick, &runs).await? {
                    Some(run) => println!("tick {tick}: host {host} runs the job, run {run}"),
                    None => println!("tick {tick}: host {host} skips it"),
                }
                sleep(BETWEEN_TICKS).await;
            }
            locks.shutdown().await?;
            Outcome::Ok(())
        }));
    }
    for host in hosts {
        host.await??;
    }
    Ok(format!("{TICKS} ticks on {HOSTS} hosts: {} runs.", runs.load(Ordering::SeqCst)))
}

#[locked("report:{tick}", on_busy = "skip", at_least = "30s", max_hold = "14m")]
async fn report(locks: &Locks, tick: u32, runs: &AtomicU32) -> Result<Option<u32>, RunError> {
    Ok(Some(runs.fetch_add(1, Ordering::SeqCst) + 1))
}
