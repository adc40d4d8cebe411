//! The baseline of a hand-off: a script that publishes in one process, a subscriber in the next, with redis-rs. The processes take
//! turns, one after the other, and hold as long as the locks beside them: `push` for one section, `push-turns` for as many as
//! bandog's unfair lock passes on inside a process while another waits. Between hand-offs the machine has then slept as long.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use peers::clock::now;
use peers::locked;
use peers::stamps::{LIMIT, Stamp};
use redis::PushKind;

use crate::args::Game;
use crate::peer::words;
use crate::stage::{Counted, begun, over, ready};
use crate::stay::stay;
use crate::tally::Tally;

const SCRIPT: &str = "return redis.call('PUBLISH', KEYS[1], ARGV[1])";
/// As long as the news of a grant.
pub(crate) const PAYLOAD: &[u8] = &[b'x'; 96];

/// How long bandog's turn is at most, if somebody waits elsewhere; half of it if everybody has had one who waited when it began.
const TURN: Duration = Duration::from_millis(10);

pub(crate) async fn play(game: &Game) -> Result<(), String> {
    only_between_processes(game)?;
    let client = redis::Client::open(game.url.as_str()).map_err(words)?;
    let mut talk = client.get_multiplexed_async_connection().await.map_err(words)?;
    let (news, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let settings = redis::AsyncConnectionConfig::new().set_push_sender(news);
    let listening = redis::Client::open(format!("{}?protocol=resp3", game.url)).map_err(words)?;
    let mut listen = listening.get_multiplexed_async_connection_with_config(&settings).await.map_err(words)?;
    let script = redis::Script::new(SCRIPT);
    script.load_async(&mut talk).await.map_err(words)?;
    let (own, other) =
        (format!("inbox:{}", game.process), format!("inbox:{}", (game.process + 1) % game.processes.max(1)));
    listen.subscribe(&own).await.map_err(words)?;
    let tally = Arc::new(Mutex::new(Tally { room: LIMIT, ..Tally::default() }));
    let rss_kib = ready();
    let (start, section, shared, first) = (begun(), game.section, Arc::clone(&tally), game.process == 0);
    let turns = (game.peer == "push-turns").then_some(game.tasks);
    let task = async move {
        let mut turn = usize::from(!first);
        loop {
            let asked = now();
            while turn > 0 && heard.recv().await.is_none_or(|push| push.kind != PushKind::Message) {}
            let held = now();
            stay(section).await;
            let mut sections = 1;
            while turns.is_some_and(|tasks| !is_over(Duration::from_nanos(now() - held), sections, tasks)) {
                stay(section).await;
                sections += 1;
            }
            let left = now();
            let sent = script.key(&other).arg(PAYLOAD).invoke_async::<()>(&mut talk).await;
            let mut tally = shared.lock().unwrap();
            match sent {
                Ok(()) => tally.held(Stamp { asked, held, left, reads: false }),
                Err(error) => tally.failed(words(error)),
            }
            turn += 1;
        }
    };
    tokio::spawn(task);
    tokio::time::sleep(game.length).await;
    let tallies = vec![tally];
    let version = locked("redis");
    Counted { end: over(), version, rss_kib, start, complete: start, tallies, lost: 0 }.tell(game);
    drop(listen);
    Ok(())
}

/// An error says that it is no baseline of this game.
pub(crate) fn only_between_processes(game: &Game) -> Result<(), String> {
    match game.stamps.is_some() && game.play == "shared" {
        true => Ok(()),
        false => Err("it is a baseline for hand-offs between processes".to_owned()),
    }
}

/// Whether a turn is over that has had so many sections of so many tasks.
pub(crate) fn is_over(passed: Duration, sections: usize, tasks: usize) -> bool {
    // Nobody waits beside the only one.
    tasks <= 1 || passed >= TURN || (passed >= TURN / 2 && sections >= tasks)
}
