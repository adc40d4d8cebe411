//! Many locks, held by one process for a while: does it keep them, and what does that take?

use std::sync::{Arc, Mutex};

use crate::args::Game;
use crate::peer::{Mode, Peer};
use crate::stage::{Counted, begun, over, ready};
use crate::tally::Tally;

/// So many are acquired at once.
const LANES: usize = 256;

pub(crate) async fn play<P: Peer>(game: &Game, peer: P) -> Result<(), String> {
    P::keeps()?;
    let before = crate::stage::resident();
    let mut lanes = Vec::new();
    for lane in 0..LANES {
        let (peer, game) = (peer.clone(), game.clone());
        lanes.push(tokio::spawn(async move {
            // At their size, and left where they are: what only counting needs is not to be counted.
            let mut guards = Vec::with_capacity(game.tasks / LANES + 1);
            for task in (lane..game.tasks).step_by(LANES) {
                guards.push(peer.acquire(&peer.lock(&game.name_of(task), Mode::Alone)?).await?);
            }
            Ok::<_, String>(guards)
        }));
    }
    let mut guards: Vec<Vec<P::Guard>> = Vec::with_capacity(LANES);
    for lane in lanes {
        guards.push(lane.await.map_err(|error| error.to_string())??);
    }
    ready();
    let start = begun();
    tokio::time::sleep(game.length).await;
    let end = over();
    let lost = guards.iter().flatten().filter(|guard| P::is_lost(guard)).count() as u64;
    let count = guards.iter().map(Vec::len).sum::<usize>() as u64;
    let tally = Tally { count, ..Tally::default() };
    let tallies = vec![Arc::new(Mutex::new(tally))];
    Counted { end, version: P::version(), rss_kib: before, start, complete: start, tallies, lost }.tell(game);
    Ok(())
}
