//! One contender of the Rust side: it says `ready`, waits for `go`, plays, and writes its result as one line of JSON.
//! `lab/README.md` has the protocol; contenders in other languages keep to it too.

mod args;
mod bandog_locks;
mod bare;
#[allow(dead_code, reason = "the baseline of the store's own benchmark; not all of it is used here")]
#[path = "../../../crates/redis/benches/speed/floor.rs"]
mod baseline;
mod baselines;
mod hold;
mod peer;
mod plain;
mod play;
mod push;
mod push_raw;
mod raw_line;
mod reenter;
mod rust_peers;
mod stage;
mod stay;
mod tally;

use args::Game;

fn main() {
    let game = Game::from_args();
    let Err(lack) = begin(&game) else { return };
    println!("lacks {lack}");
}

/// Plays; an error says what the contender lacks for it.
fn begin(game: &Game) -> Result<(), String> {
    match game.peer.as_str() {
        "raw" => plain::play::<baselines::RawScripts<false>>(game),
        "raw-awake" => plain::play::<baselines::RawScripts<true>>(game),
        "raw-line" => plain::play::<raw_line::RawLine>(game),
        "flock" => plain::play::<baselines::FlockCommand>(game),
        "flock-syscall" => plain::play::<baselines::FlockCall>(game),
        "pipelined" => baselines::pipelined(game),
        "push-raw" | "push-raw-each" | "least" | "least-each" => push_raw::play(game),
        _ => runtime()?.block_on(begin_async(game)),
    }
}

async fn begin_async(game: &Game) -> Result<(), String> {
    match game.peer.as_str() {
        "bandog" | "bandog-fair" | "bandog-dropped" => play::play::<bandog_locks::Bandog>(game).await,
        "bare" => play::play::<bare::Bare>(game).await,
        "tokio" => play::play::<rust_peers::Tokio>(game).await,
        "rslock" => play::play::<rust_peers::Rslock>(game).await,
        "rlock" => play::play::<rust_peers::Rlock>(game).await,
        "async-redis-lock" => play::play::<rust_peers::AsyncRedisLock>(game).await,
        "push" | "push-turns" => push::play(game).await,
        other => Err(format!("no contender {other:?}")),
    }
}

/// As `#[tokio::main]` makes it on a machine with two processors, for everybody alike.
fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(|error| error.to_string())
}
