//! Fair waiters in line for a few locks, as tasks or as threads, with a record of every hold.
//!
//! A line `hold LOCK OWNER TOKEN ASKED GRANTED PLACE TOLD FROM TO` tells of one hold: PLACE is 0 for a newcomer, 1 for one that
//! was told at TOLD that it is queued, 2 for one whose own claim was never seen.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bandog::{Guard, Locks, blocking};
use tokio::runtime::Runtime;

use crate::args::{Break, Duty, Style};
use crate::clock::{below, nanos, up_to};
use crate::crew::wrong;

use super::client::{PATIENCE, connect, runtime};
use super::places::{Place, Places};
use super::{listen, say};

const HOLD: Duration = Duration::from_millis(1);
/// How much later than it happened a broken worker tells of a release.
const LIE: u64 = 20_000_000;

struct Hand {
    owner: u64,
    locks: Locks,
    places: Arc<Places>,
    duty: Duty,
}

pub(super) fn play(duty: &Duty) -> io::Result<()> {
    let (runtime, places) = (runtime()?, Arc::<Places>::default());
    let locks = runtime.block_on(connect(duty, &places))?;
    say(format_args!("ready"));
    listen();
    let hands = (0..duty.hands).map(|hand| Hand {
        owner: duty.number << 16 | hand,
        locks: locks.clone(),
        places: Arc::clone(&places),
        duty: duty.clone(),
    });
    match duty.style {
        Style::Async => tasks(&runtime, hands)?,
        Style::Blocking => threads(hands)?,
    }
    runtime.block_on(locks.shutdown()).map_err(|error| wrong(error.to_string()))?;
    say(format_args!("done"));
    Ok(())
}

fn tasks(runtime: &Runtime, hands: impl Iterator<Item = Hand>) -> io::Result<()> {
    let tasks: Vec<_> = hands.map(|hand| runtime.spawn(hand.wait_as_task())).collect();
    tasks.into_iter().try_for_each(|task| runtime.block_on(task).map_err(io::Error::other)?)
}

fn threads(hands: impl Iterator<Item = Hand>) -> io::Result<()> {
    let threads: Vec<_> = hands.map(|hand| std::thread::spawn(move || hand.wait_as_thread())).collect();
    threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(wrong("a hand panicked"))))
}

impl Hand {
    async fn wait_as_task(self) -> io::Result<()> {
        for _ in 0..self.duty.rounds {
            let (lock, asked) = (below(self.duty.locks), nanos());
            let request = self.locks.mutex(name(lock)).wait(PATIENCE);
            let request = if self.is_broken() { request } else { request.fair() };
            let guard = request.acquire().await.map_err(|error| wrong(error.to_string()))?;
            let turn = self.turn(lock, asked, &guard);
            tokio::time::sleep(up_to(HOLD)).await;
            let from = nanos();
            guard.release().await.map_err(|error| wrong(error.to_string()))?;
            self.tell(&turn, from);
        }
        Ok(())
    }

    fn wait_as_thread(self) -> io::Result<()> {
        let locks = blocking::Locks::from(self.locks.clone());
        for _ in 0..self.duty.rounds {
            let (lock, asked) = (below(self.duty.locks), nanos());
            let request = locks.mutex(name(lock)).wait(PATIENCE);
            let request = if self.is_broken() { request } else { request.fair() };
            let guard = request.acquire().map_err(|error| wrong(error.to_string()))?;
            let turn = self.turn(lock, asked, &guard);
            std::thread::sleep(up_to(HOLD));
            let from = nanos();
            guard.release().map_err(|error| wrong(error.to_string()))?;
            self.tell(&turn, from);
        }
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.duty.broken == Some(Break::Unfair)
    }

    /// What is known of a hold once it is granted.
    fn turn(&self, lock: u64, asked: u64, guard: &Guard) -> String {
        let granted = nanos();
        let place = guard.hold().holder().and_then(|id| self.places.take(id));
        let (asked, place, told) = match place.filter(|place| place.sent >= asked) {
            Some(Place { sent, told: Some(told) }) => (sent, 1, told),
            Some(Place { sent, told: None }) => (sent, 0, 0),
            None => (asked, 2, 0),
        };
        format!("{lock} {} {} {asked} {granted} {place} {told}", self.owner, guard.token())
    }

    fn tell(&self, turn: &str, from: u64) {
        let lie = if self.is_broken() { LIE } else { 0 };
        say(format_args!("hold {turn} {} {}", from + lie, nanos() + lie));
    }
}

fn name(lock: u64) -> String {
    format!("line-{lock}")
}
