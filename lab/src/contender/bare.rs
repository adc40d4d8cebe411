//! A baseline: redis-rs with one shared connection and bandog's own scripts, and nothing around them. Free locks only: nobody
//! listens for a grant.

use std::sync::Arc;

use bandog_core::name::LockName;
use bandog_rig::Raw;
use peers::locked;
use redis::aio::MultiplexedConnection;

use crate::args::Game;
use crate::baseline::Floor as Baseline;
use crate::peer::{Mode, Peer, words};

#[derive(Clone)]
pub(crate) struct Bare {
    baseline: Arc<Baseline>,
    connection: MultiplexedConnection,
}

impl Peer for Bare {
    type Lock = LockName;
    /// The command that releases.
    type Guard = redis::Cmd;

    fn version() -> String {
        locked("redis")
    }

    async fn open(game: &Game) -> Result<Self, String> {
        if game.play != "pairs" {
            return Err("it waits for nobody: free locks only".to_owned());
        }
        let client = redis::Client::open(game.url.as_str()).map_err(words)?;
        let connection = client.get_multiplexed_async_connection().await.map_err(words)?;
        Ok(Self { baseline: Arc::new(Baseline::new(Raw::tcp(game.port))), connection })
    }

    fn lock(&self, name: &str, _: Mode) -> Result<LockName, String> {
        LockName::new(name).map_err(words)
    }

    async fn acquire(&self, lock: &LockName) -> Result<redis::Cmd, String> {
        let [acquire, release] = self.baseline.words(lock).map(command);
        self.connection.clone().send_packed_command(&acquire).await.map_err(words)?;
        Ok(release)
    }

    async fn release(&self, release: redis::Cmd) -> Result<(), String> {
        self.connection.clone().send_packed_command(&release).await.map(drop).map_err(words)
    }
}

fn command(words: Vec<Vec<u8>>) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command
}
