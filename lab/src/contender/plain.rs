//! The games of blocking locks, one thread each.

use std::sync::{Arc, Mutex};
use std::thread::sleep;

use peers::clock::now;
use peers::stamps::Stamp;

use crate::args::Game;
use crate::stage::{Counted, begun, over, ready};
use crate::tally::Tally;

/// One thread's way to one lock.
pub(crate) trait Plain: Sized + Send + 'static {
    fn version() -> String;
    /// An error says what it lacks.
    fn open(game: &Game, name: &str) -> Result<Self, String>;
    fn acquire(&mut self) -> Result<(), String>;
    fn release(&mut self) -> Result<(), String>;
}

pub(crate) fn play<P: Plain>(game: &Game) -> Result<(), String> {
    if game.play != "pairs" && game.play != "shared" {
        return Err(format!("it is a baseline for acquiring and releasing, not for {}", game.play));
    }
    let locks = (0..game.tasks).map(|task| P::open(game, &game.name_of(task))).collect::<Result<Vec<_>, _>>()?;
    let (mut warm, until) = (P::open(game, &game.warm_up().name_of(0))?, now() + game.warm.as_nanos() as u64);
    while now() < until {
        warm.acquire()?;
        warm.release()?;
    }
    let (step, rss_kib) = (game.step, ready());
    let start = now();
    let mut tallies = Vec::new();
    for lock in locks {
        let tally = Arc::new(Mutex::new(Tally::with_stamps(game.stamps.is_some(), game.tasks)));
        let (game, shared) = (game.clone(), Arc::clone(&tally));
        std::thread::spawn(move || turns(lock, &game, &shared));
        tallies.push(tally);
        if !step.is_zero() {
            sleep(step);
        }
    }
    let complete = begun();
    sleep(game.length);
    Counted { end: over(), version: P::version(), rss_kib, start, complete, tallies, lost: 0 }.tell(game);
    Ok(())
}

fn turns(mut lock: impl Plain, game: &Game, tally: &Mutex<Tally>) {
    loop {
        let asked = tally.lock().unwrap().asks();
        let hold = lock.acquire().and_then(|()| {
            let held = now();
            if !game.section.is_zero() {
                sleep(game.section);
            }
            let left = now();
            lock.release().map(|()| Stamp { asked, held, left, reads: false })
        });
        match hold {
            Ok(stamp) => tally.lock().unwrap().held(stamp),
            Err(error) => tally.lock().unwrap().failed(error),
        }
        if !game.pause.is_zero() {
            sleep(game.pause);
        }
    }
}
