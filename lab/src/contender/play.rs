//! The games of async locks: tasks that acquire, stay, release, and ask again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use peers::clock::now;
use peers::stamps::Stamp;

use crate::args::Game;
use crate::peer::{Mode, Peer};
use crate::stage::{Counted, begun, over, ready};
use crate::stay::stay;
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
    let seat = |(locks, tally)| Seat { peer: peer.clone(), locks, game: Arc::clone(&shared), tally: Arc::clone(tally) };
    let seats: Vec<_> = locks.into_iter().zip(&tallies).map(seat).map(Arc::new).collect();
    let rss_kib = ready();
    let start = now();
    for seat in seats {
        tokio::spawn(turns(seat, u64::MAX));
        if !game.step.is_zero() {
            tokio::time::sleep(game.step).await;
        }
    }
    let complete = begun();
    tokio::time::sleep(game.length).await;
    Counted { end: over(), version: P::version(), rss_kib, start, complete, tallies, lost: 0 }.tell(game);
    Ok(())
}

/// Plays for nothing on other names, with the other processes if the game is with them: what a process needs once (connections,
/// threads) is there before anything is weighed, and everybody has waited for a lock before.
async fn warm<P: Peer>(peer: &P, game: &Game) -> Result<(), String> {
    let game = Arc::new(game.warm_up());
    let until = now() + game.length.as_nanos() as u64;
    let mut tasks = Vec::new();
    for task in 0..game.tasks {
        let (locks, game) = (Locks::of(peer, &game, task)?, Arc::clone(&game));
        tasks.push(tokio::spawn(turns(
            Arc::new(Seat { peer: peer.clone(), locks, game, tally: Arc::default() }),
            until,
        )));
    }
    // It must be over before anything counts.
    for task in tasks {
        task.await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What a task has from the beginning.
struct Seat<P: Peer> {
    peer: P,
    locks: Locks<P>,
    game: Arc<Game>,
    tally: Arc<Mutex<Tally>>,
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
            Self::ReadWrite(read, _) if self.is_read(turn) => read,
            Self::One(lock) | Self::ReadWrite(_, lock) => lock,
        }
    }

    fn is_read(&self, turn: usize) -> bool {
        matches!(self, Self::ReadWrite(..)) && turn % 10 != 9
    }
}

async fn turns<P: Peer>(seat: Arc<Seat<P>>, until: u64) {
    let tally = || seat.tally.lock().unwrap();
    for turn in (0..).take_while(|_| now() < until) {
        let asked = tally().asks();
        match one(&seat, turn, asked).await {
            Ok(stamp) => tally().held(stamp),
            Err(error) => {
                tally().failed(error);
                stay(Duration::from_millis(1)).await;
            }
        }
        stay(seat.game.pause).await;
    }
}

async fn one<P: Peer>(seat: &Seat<P>, turn: usize, asked: u64) -> Result<Stamp, String> {
    let guard = seat.peer.acquire(seat.locks.at(turn)).await?;
    // In a box: a task that still waits has no room for what comes then.
    Box::pin(keep(seat, guard, asked, seat.locks.is_read(turn))).await
}

async fn keep<P: Peer>(seat: &Seat<P>, guard: P::Guard, asked: u64, reads: bool) -> Result<Stamp, String> {
    let held = now();
    stay(seat.game.section).await;
    let left = now();
    seat.peer.release(guard).await?;
    Ok(Stamp { asked, held, left, reads })
}
