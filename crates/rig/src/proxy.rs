//! A proxy that knows requests from replies, so that exactly one of them can be lost, held up, or come twice.
//!
//! Requests are named by the script they call (`acquire`, `renew`, …) or by their command (`subscribe`, …). A stream cannot
//! lose a piece from its middle: what is lost takes the connection with it, as it does in a network.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use bandog_redis::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Notify, oneshot};

use crate::Server;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not arrive, and the connection is cut.
    LoseRequest,
    /// Half of it arrives, and the connection is cut.
    TearRequest,
    /// It is executed, the reply does not arrive, and the connection is cut.
    LoseReply,
    /// It is executed, half of the reply arrives, and the connection is cut.
    TearReply,
    /// It is executed, so many bytes of the reply arrive, and then the connection is cut or silent.
    EndReply(usize, End),
    /// It and all behind it wait for [`Proxy::let_go`].
    HoldRequest,
    /// Its reply and all behind it wait for [`Proxy::let_go`].
    HoldReply,
    /// Half of it arrives; the rest and all behind it wait for [`Proxy::let_go`].
    SplitRequest,
    /// Half of its reply arrives; the rest and all behind it wait for [`Proxy::let_go`].
    SplitReply,
    /// The connection is cut, and the request arrives with [`Proxy::haunt`].
    Ghost,
    /// It arrives, and once more with [`Proxy::haunt`].
    Twice,
}

/// What becomes of a connection that has brought so many bytes of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is cut.
    Cut,
    /// Nothing comes any more, and it stays open.
    Silence,
}

/// The end of every connection from one on, counted from 0.
#[derive(Debug, Clone, Copy)]
struct Ending {
    from: usize,
    bytes: usize,
    how: End,
}

/// A way to a server that can be made worse.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    upstream: PathBuf,
    plans: Mutex<Vec<Plan>>,
    ghosts: Mutex<Vec<Vec<u8>>>,
    seen: Mutex<Vec<String>>,
    deaf: Mutex<bool>,
    swallowed: Mutex<usize>,
    connections: Mutex<usize>,
    /// Connections above this number are closed as soon as they are opened.
    open: Mutex<usize>,
    ending: Mutex<Option<Ending>>,
    replies: Mutex<Vec<(String, usize)>>,
    go: Notify,
}

#[derive(Debug)]
struct Plan {
    on: &'static str,
    fault: Fault,
    hit: oneshot::Sender<()>,
}

impl Proxy {
    /// A proxy before a server; it ends with the runtime.
    pub async fn of(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            upstream: server.socket(),
            plans: Mutex::default(),
            ghosts: Mutex::default(),
            seen: Mutex::default(),
            deaf: Mutex::default(),
            swallowed: Mutex::default(),
            connections: Mutex::default(),
            open: Mutex::new(usize::MAX),
            ending: Mutex::default(),
            replies: Mutex::default(),
            go: Notify::new(),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = {
                    let mut connections = shared.connections.lock().unwrap();
                    *connections += 1;
                    *connections - 1
                };
                if number >= *shared.open.lock().unwrap() {
                    continue;
                }
                tokio::spawn(carry(Arc::clone(&shared), client, number));
            }
        });
        Self { port, state }
    }

    /// Its address, to be used like the server's.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Lets the next request of this name go wrong; resolves when it has.
    pub fn plan(&self, on: &'static str, fault: Fault) -> oneshot::Receiver<()> {
        let (hit, happened) = oneshot::channel();
        self.state.plans.lock().unwrap().push(Plan { on, fault, hit });
        happened
    }

    /// How many requests of this name have arrived.
    pub fn seen(&self, name: &str) -> usize {
        self.state.seen.lock().unwrap().iter().filter(|seen| *seen == name).count()
    }

    /// How many requests of every name have arrived.
    pub fn all_seen(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for name in self.state.seen.lock().unwrap().iter() {
            *counts.entry(name.clone()).or_default() += 1;
        }
        counts
    }

    /// How often somebody connected.
    pub fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }

    /// Closes every connection behind the first so many as soon as it is opened.
    pub fn close_behind(&self, connections: usize) {
        *self.state.open.lock().unwrap() = connections;
    }

    /// Ends every connection, from the one with this number on, when it has brought so many bytes of replies. Those that are open and
    /// have brought as many end with the next one.
    pub fn end_after(&self, from: usize, bytes: usize, how: End) {
        *self.state.ending.lock().unwrap() = Some(Ending { from, bytes, how });
    }

    /// Ends no connection that has not ended yet.
    pub fn mend(&self) {
        *self.state.ending.lock().unwrap() = None;
    }

    /// The replies so far, on whichever connection: to what, and how long.
    pub fn replies(&self) -> Vec<(String, usize)> {
        self.state.replies.lock().unwrap().clone()
    }

    /// Lets the one thing that is held, or about to be, go on.
    pub fn let_go(&self) {
        self.state.go.notify_one();
    }

    /// Whether news is swallowed.
    pub fn deafen(&self, deaf: bool) {
        *self.state.deaf.lock().unwrap() = deaf;
    }

    /// How much news was swallowed.
    pub fn swallowed(&self) -> usize {
        *self.state.swallowed.lock().unwrap()
    }

    /// Lets the ghosts arrive, each on a connection of its own, and gives the replies.
    pub async fn haunt(&self) -> Vec<String> {
        let ghosts = std::mem::take(&mut *self.state.ghosts.lock().unwrap());
        let mut replies = Vec::new();
        for ghost in ghosts {
            let mut server = UnixStream::connect(&self.state.upstream).await.unwrap();
            server.write_all(&ghost).await.unwrap();
            let mut buffer = Vec::new();
            let length = loop {
                server.read_buf(&mut buffer).await.unwrap();
                if let Some(length) = frame(&buffer) {
                    break length;
                }
            };
            replies.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        replies
    }
}

impl State {
    /// How many bytes more a connection brings that has brought so many, and what comes then.
    fn room(&self, number: usize, brought: usize) -> Option<(usize, End)> {
        let ending = self.ending.lock().unwrap().filter(|ending| number >= ending.from)?;
        Some((ending.bytes.saturating_sub(brought), ending.how))
    }

    fn plan_for(&self, name: &str) -> Option<Fault> {
        self.seen.lock().unwrap().push(name.to_owned());
        let mut plans = self.plans.lock().unwrap();
        let plan = plans.iter().position(|plan| plan.on == name).map(|at| plans.remove(at))?;
        // A test need not wait for it.
        let _ = plan.hit.send(());
        Some(plan.fault)
    }
}

async fn carry(state: Arc<State>, client: TcpStream, number: usize) {
    let Ok(server) = UnixStream::connect(&state.upstream).await else { return };
    client.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let expected = Arc::new(Mutex::new(VecDeque::new()));
    let there = requests(Arc::clone(&state), from_client, to_server, Arc::clone(&expected));
    let back = replies(state, from_server, to_client, expected, number);
    // Either way's end is the end of both.
    tokio::select! { () = there => {}, () = back => {} }
}

/// What was asked, and what is to happen to the reply.
type Expected = Arc<Mutex<VecDeque<(String, Option<Fault>)>>>;

async fn requests(
    state: Arc<State>,
    mut client: impl AsyncReadExt + Unpin,
    mut server: impl AsyncWriteExt + Unpin,
    expected: Expected,
) {
    let mut buffer = Vec::new();
    while matches!(client.read_buf(&mut buffer).await, Ok(read) if read > 0) {
        while let Some(length) = frame(&buffer) {
            let request: Vec<u8> = buffer.drain(..length).collect();
            let name = name(&request);
            let fault = state.plan_for(&name);
            let mut rest = &request[..];
            match fault {
                Some(Fault::LoseRequest) => return,
                // Whether it still gets there or not: the connection is cut.
                Some(Fault::TearRequest) => return drop(server.write_all(&request[..length / 2]).await),
                Some(Fault::Ghost) => return state.ghosts.lock().unwrap().push(request),
                Some(Fault::Twice) => state.ghosts.lock().unwrap().push(request.clone()),
                Some(Fault::HoldRequest) => state.go.notified().await,
                Some(Fault::SplitRequest) => {
                    let (half, other) = request.split_at(length / 2);
                    if server.write_all(half).await.is_err() {
                        return;
                    }
                    rest = other;
                    state.go.notified().await;
                }
                _ => {}
            }
            expected.lock().unwrap().push_back((name, fault));
            if server.write_all(rest).await.is_err() {
                return;
            }
        }
    }
}

async fn replies(
    state: Arc<State>,
    mut server: impl AsyncReadExt + Unpin,
    mut client: impl AsyncWriteExt + Unpin,
    expected: Expected,
    number: usize,
) {
    let (mut buffer, mut brought) = (Vec::new(), 0);
    while matches!(server.read_buf(&mut buffer).await, Ok(read) if read > 0) {
        while let Some(length) = frame(&buffer) {
            let reply: Vec<u8> = buffer.drain(..length).collect();
            let mut rest = &reply[..];
            if is_news(&reply) {
                if *state.deaf.lock().unwrap() {
                    *state.swallowed.lock().unwrap() += 1;
                    continue;
                }
            } else {
                let (name, fault) = expected.lock().unwrap().pop_front().unwrap_or_default();
                state.replies.lock().unwrap().push((name, length));
                match fault {
                    Some(Fault::EndReply(bytes, how)) => {
                        // Whether they get there or not: this is the end.
                        drop(client.write_all(&reply[..bytes.min(length)]).await);
                        return end(how).await;
                    }
                    Some(Fault::LoseReply) => return,
                    Some(Fault::TearReply) => return drop(client.write_all(&reply[..length / 2]).await),
                    Some(Fault::HoldReply) => state.go.notified().await,
                    Some(Fault::SplitReply) => {
                        let (half, other) = reply.split_at(length / 2);
                        if client.write_all(half).await.is_err() {
                            return;
                        }
                        rest = other;
                        state.go.notified().await;
                    }
                    _ => {}
                }
            }
            match state.room(number, brought) {
                Some((room, how)) if room <= length => {
                    // Whether it gets there or not: this is the end.
                    drop(client.write_all(&reply[..room]).await);
                    return end(how).await;
                }
                _ => brought += length,
            }
            if client.write_all(rest).await.is_err() {
                return;
            }
        }
    }
}

async fn end(how: End) {
    match how {
        End::Cut => {}
        End::Silence => std::future::pending().await,
    }
}

fn is_news(reply: &[u8]) -> bool {
    reply.starts_with(b">3\r\n$7\r\nmessage")
}

/// Made once: to hash every script for every request would hold up a crowd.
static DIGESTS: LazyLock<Vec<(String, Script)>> = LazyLock::new(|| {
    let digest = |script: Script| redis::Script::new(script.text()).get_hash().to_owned();
    Script::ALL.into_iter().map(|script| (digest(script), script)).collect()
});

/// The script that a request calls, or its command.
fn name(request: &[u8]) -> String {
    let words: Vec<&[u8]> = request.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end()).collect();
    let word = |at: usize| words.get(at).map(|word| String::from_utf8_lossy(word).to_lowercase()).unwrap_or_default();
    let called = || DIGESTS.iter().find(|(digest, _)| *digest == word(4)).map(|(_, script)| *script);
    match word(2).as_str() {
        "evalsha" => called().map_or_else(|| "unknown".to_owned(), |script| script.word().to_owned()),
        command => command.to_owned(),
    }
}

/// How long the first value in the bytes is, if it is there whole.
fn frame(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let count = || std::str::from_utf8(&bytes[1..end]).ok()?.trim().parse::<i64>().ok();
    let values = match bytes[0] {
        b'$' | b'=' => {
            let whole = end + usize::try_from(count()?).map_or(0, |length| length + 2);
            return (bytes.len() >= whole).then_some(whole);
        }
        b'*' | b'>' | b'~' => count()?,
        b'%' => count()? * 2,
        _ => 0,
    };
    let mut length = end;
    for _ in 0..values {
        length += frame(&bytes[length..])?;
    }
    Some(length)
}
