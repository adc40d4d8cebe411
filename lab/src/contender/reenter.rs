//! A holder that enters its own lock again and leaves it, in batches: one entry is too short for a clock.

use std::sync::{Arc, Mutex};

use peers::clock::now;

use crate::args::Game;
use crate::peer::{Peer, words};
use crate::stage::{Counted, begun, over, ready};
use crate::tally::Tally;

const BATCH: u64 = 100;

pub(crate) async fn play<P: Peer>(game: &Game, peer: P) -> Result<(), String> {
    let lock = peer.reentrant(&game.name)?;
    let outer = peer.acquire(&lock).await?;
    let rss_kib = ready();
    let start = begun();
    let (until, owned) = (start + game.length.as_nanos() as u64, peer.clone());
    // As a task among others: the thread that blocks on a runtime is not one of its workers.
    let task = tokio::spawn(async move {
        let mut tally = Tally::default();
        while now() < until {
            let before = now();
            for _ in 0..BATCH {
                let left = match owned.acquire(&lock).await {
                    Ok(inner) => owned.release(inner).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = left {
                    tally.failed(error);
                }
            }
            tally.pair.add((now() - before) / BATCH);
            tally.count += BATCH;
        }
        tally
    });
    let (tally, end) = (Arc::new(Mutex::new(task.await.map_err(words)?)), over());
    peer.release(outer).await?;
    let tallies = vec![tally];
    Counted { end, version: P::version(), rss_kib, start, complete: start, tallies, lost: 0 }.tell(game);
    Ok(())
}
