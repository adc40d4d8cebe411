//! The games of async locks: tasks that acquire, stay, release, and ask again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use peers::clock::now;
use peers::stamps::Stamp;

use crate::args::Game;
use crate::peer::{Mode, Peer};
use crate::stage::{Counted, ready};
use crate::tally::Tally;
use crate::{hold, reenter};

pub(crate) async fn play<P: Peer>(game: &Game) -> Result<(), String> {
    let peer = P::open(game).await?;
    match game.play.as_str() {
        "hold" => return hold::play(game, peer).await,
        "reenter" => return reenter::play(game, peer).await,
        _ => {}
    }
    let locks = (0..game.tasks).map(|task| Locks::of(&peer, game, task)).collect::<Result<Vec<_>, _>>()?;
    warm(&peer, game).await?;
    // What only the game needs is there before anything is weighed.
    let tally = || Arc::new(Mutex::new(Tally::with_stamps(game.stamps.is_some(), game.tasks)));
    let tallies: Vec<_> = locks.iter().map(|_| tally()).collect();
    let shared = Arc::new(game.clone());
    let rss_kib = ready();
    let start = now();
    for (lock, tally) in locks.into_iter().zip(&tallies) {
        tokio::spawn(turns(peer.clone(), lock, Arc::clone(&shared), Arc::clone(tally)));
        if !game.step.is_zero() {
            tokio::time::sleep(game.step).await;
        }
    }
    let complete = now();
    tokio::time::sleep(game.length).await;
    Counted { version: P::version(), rss_kib, start, complete, tallies, lost: 0 }.tell(game);
    Ok(())
}

/// Plays for nothing on a name of its own.
async fn warm<P: Peer>(peer: &P, game: &Game) -> Result<(), String> {
    let locks = Locks::One(peer.lock(&game.warm_name(), Mode::Alone)?);
    let still = Game { section: Duration::ZERO, pause: Duration::ZERO, ..game.clone() };
    let task = tokio::spawn(turns(peer.clone(), locks, Arc::new(still), Arc::default()));
    tokio::time::sleep(game.warm).await;
    task.abort();
    // It must be over before anything counts.
    let _ = task.await;
    Ok(())
}

/// What a task acquires.
enum Locks<P: Peer> {
    One(P::Lock),
    /// Nine times of ten the first.
    ReadWrite(P::Lock, P::Lock),
}

impl<P: Peer> Locks<P> {
    fn of(peer: &P, game: &Game, task: usize) -> Result<Self, String> {
        let lock = |mode| peer.lock(&game.name_of(task), mode);
        match game.play.as_str() {
            "readers" => Ok(Self::ReadWrite(lock(Mode::Read)?, lock(Mode::Write)?)),
            _ => lock(Mode::Alone).map(Self::One),
        }
    }

    fn at(&self, turn: usize) -> &P::Lock {
        match self {
            Self::One(lock) => lock,
            Self::ReadWrite(_, write) if turn % 10 == 9 => write,
            Self::ReadWrite(read, _) => read,
        }
    }
}

async fn turns<P: Peer>(peer: P, locks: Locks<P>, game: Arc<Game>, tally: Arc<Mutex<Tally>>) {
    for turn in 0.. {
        let asked = tally.lock().unwrap().asks();
        match one(&peer, locks.at(turn), &game, asked).await {
            Ok(stamp) => tally.lock().unwrap().held(stamp),
            Err(error) => {
                tally.lock().unwrap().failed(error);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if !game.pause.is_zero() {
            tokio::time::sleep(game.pause).await;
        }
    }
}

async fn one<P: Peer>(peer: &P, lock: &P::Lock, game: &Game, asked: u64) -> Result<Stamp, String> {
    let guard = peer.acquire(lock).await?;
    let held = now();
    if !game.section.is_zero() {
        tokio::time::sleep(game.section).await;
    }
    let left = now();
    peer.release(guard).await?;
    Ok(Stamp { asked, held, left })
}
