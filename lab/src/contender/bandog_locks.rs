//! bandog as it comes: `Locks::connect`, default lease and watchdog.

use bandog::{Guard as Alone, Locks, Mutex, Owner, Read, ReadGuard, Write, WriteGuard};

use crate::args::Game;
use crate::peer::{Mode, Peer, words};

#[derive(Debug, Clone)]
pub(crate) struct Bandog {
    locks: Locks,
    fair: bool,
    /// Guards are dropped, and nobody waits for the release.
    drops: bool,
    owner: Owner,
}

pub(crate) enum Lock {
    Alone(Mutex),
    Read(Read),
    Write(Write),
}

pub(crate) enum Guard {
    Alone(Alone),
    Read(ReadGuard),
    Write(WriteGuard),
}

impl Peer for Bandog {
    type Lock = Lock;
    type Guard = Guard;

    fn version() -> String {
        "this commit".to_owned()
    }

    async fn open(game: &Game) -> Result<Self, String> {
        let locks = Locks::connect(&game.url).await.map_err(words)?;
        let (fair, drops) = (game.peer == "bandog-fair", game.peer == "bandog-dropped");
        Ok(Self { locks, fair, drops, owner: Owner::new() })
    }

    fn lock(&self, name: &str, mode: Mode) -> Result<Lock, String> {
        let (read, write) = (self.locks.rwlock(name).read(), self.locks.rwlock(name).write());
        Ok(match (mode, self.fair) {
            (Mode::Alone, true) => Lock::Alone(self.locks.mutex(name).fair()),
            (Mode::Alone, false) => Lock::Alone(self.locks.mutex(name)),
            (Mode::Read, true) => Lock::Read(read.fair()),
            (Mode::Read, false) => Lock::Read(read),
            (Mode::Write, true) => Lock::Write(write.fair()),
            (Mode::Write, false) => Lock::Write(write),
        })
    }

    fn reentrant(&self, name: &str) -> Result<Lock, String> {
        Ok(Lock::Alone(self.locks.mutex(name).owner(&self.owner).reentrant()))
    }

    async fn acquire(&self, lock: &Lock) -> Result<Guard, String> {
        match lock {
            Lock::Alone(lock) => lock.acquire().await.map(Guard::Alone),
            Lock::Read(lock) => lock.acquire().await.map(Guard::Read),
            Lock::Write(lock) => lock.acquire().await.map(Guard::Write),
        }
        .map_err(words)
    }

    async fn release(&self, guard: Guard) -> Result<(), String> {
        match guard {
            guard if self.drops => {
                drop(guard);
                Ok(())
            }
            Guard::Alone(guard) => guard.release().await,
            Guard::Read(guard) => guard.release().await,
            Guard::Write(guard) => guard.release().await,
        }
        .map_err(words)
    }

    fn is_lost(guard: &Guard) -> bool {
        match guard {
            Guard::Alone(guard) => !guard.is_held(),
            Guard::Read(guard) => !guard.is_held(),
            Guard::Write(guard) => !guard.is_held(),
        }
    }
}
