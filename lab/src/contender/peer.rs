//! What an async lock must do to take part.

use crate::args::Game;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Alone,
    Read,
    Write,
}

/// A library with async locks. Errors are words for the report.
pub(crate) trait Peer: Clone + Send + Sync + 'static {
    /// What is made once and acquired often.
    type Lock: Send + Sync;
    type Guard: Send;

    fn version() -> String;

    fn open(game: &Game) -> impl Future<Output = Result<Self, String>>;

    /// An error says what the library lacks.
    fn lock(&self, name: &str, mode: Mode) -> Result<Self::Lock, String>;

    fn acquire(&self, lock: &Self::Lock) -> impl Future<Output = Result<Self::Guard, String>> + Send;

    fn release(&self, guard: Self::Guard) -> impl Future<Output = Result<(), String>> + Send;

    /// A lock that its holder can acquire again while it holds it.
    fn reentrant(&self, _name: &str) -> Result<Self::Lock, String> {
        Err("its locks cannot be acquired again by their holder".to_owned())
    }

    /// An error says why the library cannot keep a hold for long.
    fn keeps() -> Result<(), String> {
        Ok(())
    }

    fn is_lost(_guard: &Self::Guard) -> bool {
        false
    }
}

/// Any error as words.
pub(crate) fn words(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
