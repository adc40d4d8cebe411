//! What each of the two processes does: it holds for a moment, leaves, and stands in line again, until time is over. Then it
//! prints when everybody had come, and each of its holds: its token, when it began, and when it was let go.

use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bandog::{Locks, Token};
use bandog_redis::Value;
use bandog_rig::Raw;

use crate::figures::now;
use crate::floor::load;

/// The first word for a process that plays.
pub(crate) const ROLE: &str = "player";
/// How long each hold lasts: by then everybody stands in line again, and the machine has come to rest.
const HOLD: Duration = Duration::from_millis(2);

/// How long after leaving somebody stands in line again: what it does then must not be in the way of the next.
const PAUSE: Duration = Duration::from_millis(1);
/// Players join one by one, so that those of both processes stand mixed.
const STEP: Duration = Duration::from_micros(200);

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A message, published by a script, with a blocking client.
    Raw,
    /// The same with the async client that the store uses.
    Bare,
    /// Locks, with tasks.
    Tasks,
    /// Locks, with threads.
    Threads,
}

impl Part {
    const ALL: [Self; 4] = [Self::Raw, Self::Bare, Self::Tasks, Self::Threads];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Bare => "bare",
            Self::Tasks => "async",
            Self::Threads => "blocking",
        }
    }
}

/// Where and how long.
#[derive(Debug, Clone, Copy)]
struct Game {
    port: u16,
    number: usize,
    players: usize,
    length: Duration,
}

/// Plays one part in this process.
pub(crate) fn play(words: &[String]) {
    let part = Part::ALL.into_iter().find(|part| part.name() == words[0]).unwrap();
    let number = |at: usize| words[at].parse::<usize>().unwrap();
    let length = Duration::from_millis(words[4].parse().unwrap());
    let game = Game { port: words[1].parse().unwrap(), number: number(2), players: number(3), length };
    match part {
        Part::Raw => raw(game),
        Part::Bare => bare(game),
        Part::Tasks => tasks(game),
        Part::Threads => threads(game),
    }
}

fn start() {
    println!("ready");
    let mut word = String::new();
    std::io::stdin().lock().read_line(&mut word).unwrap();
}

/// The holds of this process.
#[derive(Debug, Clone, Default)]
struct Holds(Arc<Mutex<(u64, Vec<[u64; 3]>)>>);

impl Holds {
    fn add(&self, token: u64, held: u64, left: u64) {
        self.0.lock().unwrap().1.push([token, held, left]);
    }

    /// Everybody has come: from now on it counts.
    fn complete(&self) {
        self.0.lock().unwrap().0 = now();
    }

    fn tell(&self) {
        let holds = self.0.lock().unwrap();
        println!("{}", holds.0);
        for [token, held, left] in &holds.1 {
            println!("{token} {held} {left}");
        }
    }
}

fn raw(game: Game) {
    let (mut talk, mut listen) = (Raw::tcp(game.port), Raw::tcp(game.port));
    let digest = load(&mut talk, SCRIPT);
    let (own, other) = (format!("inbox:{}", game.number), format!("inbox:{}", 1 - game.number));
    listen.ask(&["SUBSCRIBE", &own]);
    start();
    let end = now() + u64::try_from(game.length.as_nanos()).unwrap();
    let (holds, mut turn) = (Holds::default(), game.number as u64);
    while now() < end {
        if turn > 0 {
            let Value::Array(message) = listen.read() else { panic!("no message") };
            if matches!(&message[2], Value::Bytes(word) if word == END) {
                break;
            }
        }
        let held = now();
        std::thread::sleep(HOLD);
        let left = now();
        let told: [&[u8]; 5] = [b"EVALSHA", &digest, b"1", other.as_bytes(), PAYLOAD];
        talk.ask(&told);
        holds.add(turn, held, left);
        turn += 2;
    }
    // The other may be waiting for the next.
    talk.ask::<&[u8]>(&[b"PUBLISH", other.as_bytes(), END]);
    holds.tell();
}

fn bare(game: Game) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = redis::Client::open(url(game)).unwrap();
        let mut talk = client.get_multiplexed_async_connection().await.unwrap();
        let (news, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let settings = redis::AsyncConnectionConfig::new().set_push_sender(news);
        let listening = redis::Client::open(format!("{}?protocol=resp3", url(game))).unwrap();
        let mut listen = listening.get_multiplexed_async_connection_with_config(&settings).await.unwrap();
        let script = redis::Script::new(SCRIPT);
        script.load_async(&mut talk).await.unwrap();
        let (own, other) = (format!("inbox:{}", game.number), format!("inbox:{}", 1 - game.number));
        listen.subscribe(&own).await.unwrap();
        start();
        let end = now() + u64::try_from(game.length.as_nanos()).unwrap();
        let (holds, mut turn) = (Holds::default(), game.number as u64);
        while now() < end {
            if turn > 0 {
                let message = loop {
                    let push = heard.recv().await.unwrap();
                    if push.kind == redis::PushKind::Message {
                        break push;
                    }
                };
                if message.data.last() == Some(&redis::Value::BulkString(END.to_vec())) {
                    break;
                }
            }
            let held = now();
            tokio::time::sleep(HOLD).await;
            let left = now();
            script.key(&other).arg(PAYLOAD.as_slice()).invoke_async::<()>(&mut talk).await.unwrap();
            holds.add(turn, held, left);
            turn += 2;
        }
        // The other may be waiting for the next.
        redis::cmd("PUBLISH").arg(&other).arg(END).query_async::<()>(&mut talk).await.unwrap();
        holds.tell();
    });
}

const SCRIPT: &str = "return redis.call('PUBLISH', KEYS[1], ARGV[1])";
const END: &[u8] = b"end";
/// As long as the news of a grant.
const PAYLOAD: &[u8; 96] = &[b'x'; 96];

fn tasks(game: Game) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let locks = Locks::connect(&url(game)).await.unwrap();
        let holds = Holds::default();
        start();
        for _ in 0..game.players {
            let (lock, holds) = (locks.mutex("job").fair(), holds.clone());
            tokio::time::sleep(STEP).await;
            tokio::spawn(async move {
                while let Ok(guard) = lock.acquire().await {
                    let held = now();
                    tokio::time::sleep(HOLD).await;
                    let (token, left) = (guard.token(), now());
                    guard.release().await.unwrap();
                    holds.add(digits(token), held, left);
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        holds.complete();
        tokio::time::sleep(game.length).await;
        holds.tell();
    });
}

fn threads(game: Game) {
    let locks = bandog::blocking::Locks::connect(&url(game)).unwrap();
    let holds = Holds::default();
    start();
    for _ in 0..game.players {
        let (lock, holds) = (locks.mutex("job").fair(), holds.clone());
        std::thread::sleep(STEP);
        std::thread::spawn(move || {
            while let Ok(guard) = lock.acquire() {
                let held = now();
                std::thread::sleep(HOLD);
                let (token, left) = (guard.token(), now());
                guard.release().unwrap();
                holds.add(digits(token), held, left);
                std::thread::sleep(PAUSE);
            }
        });
    }
    holds.complete();
    std::thread::sleep(game.length);
    holds.tell();
}

fn url(game: Game) -> String {
    format!("redis://127.0.0.1:{}", game.port)
}

fn digits(token: Token) -> u64 {
    token.to_string().parse().unwrap()
}
