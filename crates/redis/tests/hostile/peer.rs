//! A peer that speaks RESP and says what a test wants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A command: its words, as text.
pub(crate) type Words = Vec<String>;

/// What is answered to a command; nothing where the usual answer will do.
type Script = dyn Fn(&[String]) -> Option<Vec<u8>> + Send + Sync;

/// A peer on a port of its own. It ends with the runtime.
pub(crate) struct Peer {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    script: Box<Script>,
    heard: Mutex<Vec<Words>>,
    connections: AtomicUsize,
}

impl Peer {
    pub(crate) async fn start(script: impl Fn(&[String]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let state =
            Arc::new(State { script: Box::new(script), heard: Mutex::default(), connections: AtomicUsize::new(0) });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(Arc::clone(&shared), client));
            }
        });
        Self { url, state }
    }

    /// How often it was asked for this.
    pub(crate) fn heard(&self, word: &str) -> usize {
        self.state.heard.lock().unwrap().iter().filter(|words| words[0] == word).count()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

async fn serve(state: Arc<State>, mut client: TcpStream) {
    let mut buffer = Vec::new();
    while matches!(client.read_buf(&mut buffer).await, Ok(read) if read > 0) {
        while let Some((words, length)) = command(&buffer) {
            buffer.drain(..length);
            let answer = (state.script)(&words).unwrap_or_else(|| usual(&words));
            // The texts of scripts are long, and nobody asks for them.
            state.heard.lock().unwrap().push(words.into_iter().map(|word| word.chars().take(80).collect()).collect());
            if client.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

/// The first command in the bytes and its length, if it is there whole.
fn command(bytes: &[u8]) -> Option<(Words, usize)> {
    let line = |at: usize| {
        let end = at + bytes.get(at..)?.iter().position(|byte| *byte == b'\n')?;
        Some((std::str::from_utf8(&bytes[at + 1..end]).unwrap().trim().parse::<usize>().unwrap(), end + 1))
    };
    let (count, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, start) = line(at)?;
        at = start + length + 2;
        words.push(String::from_utf8_lossy(bytes.get(start..at)?).trim_end().to_owned());
    }
    Some((words, at))
}

/// What a server says that is fit for locks.
fn usual(words: &[String]) -> Vec<u8> {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let confirmed = |kind: &str| format!(">3\r\n{}{}:1\r\n", bulk(kind), bulk(&words[1]));
    let text = match words[0].as_str() {
        "HELLO" => "%0\r\n".to_owned(),
        "INFO" => bulk("redis_version:7.2.0\r\nrun_id:0123456789abcdef\r\nrole:master\r\nredis_mode:standalone\r\n"),
        "TIME" => "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n".to_owned(),
        "SCRIPT" => "+sha\r\n".to_owned(),
        "SUBSCRIBE" => confirmed("subscribe"),
        "UNSUBSCRIBE" => confirmed("unsubscribe"),
        "EVAL" => "*0\r\n".to_owned(),
        "EVALSHA" => "-NOSCRIPT no such script\r\n".to_owned(),
        "PUBLISH" => ":0\r\n".to_owned(),
        "SCAN" => "*2\r\n$1\r\n0\r\n*0\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    };
    text.into_bytes()
}
