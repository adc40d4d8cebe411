//! A way to any server over TCP that ends, or falls silent, after so many bytes in either direction.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::End;

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// What is asked.
    Client,
    /// What is answered.
    Server,
}

/// A way to a server.
#[derive(Debug)]
pub struct Cable {
    /// Where it listens, on loopback.
    pub port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    end: Mutex<Option<(Sender, usize, End)>>,
    /// Told when every connection is to be cut.
    cut: watch::Sender<u64>,
}

impl Cable {
    /// A way to the server at this port; it ends with the runtime.
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State { end: Mutex::new(None), cut: watch::Sender::new(0) });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(carry(Arc::clone(&shared), Sender::Client, from_client, to_server));
                tokio::spawn(carry(Arc::clone(&shared), Sender::Server, from_server, to_client));
            }
        });
        Self { port, state }
    }

    /// Lets so many more bytes of this sender through, of all connections together, and then ends the one that brings the next.
    pub fn end_after(&self, sender: Sender, bytes: usize, how: End) {
        *self.state.end.lock().unwrap() = Some((sender, bytes, how));
    }

    /// Whether that has happened.
    pub fn has_ended(&self) -> bool {
        matches!(*self.state.end.lock().unwrap(), Some((_, 0, _)))
    }

    /// Lets everything through again on connections that are opened from now on, and cuts all others.
    pub fn mend(&self) {
        *self.state.end.lock().unwrap() = None;
        self.state.cut.send_modify(|cuts| *cuts += 1);
    }
}

impl State {
    /// How many of so many bytes go through, and what becomes of the connection if not all do.
    fn admit(&self, sender: Sender, count: usize) -> (usize, Option<End>) {
        let mut end = self.end.lock().unwrap();
        let Some((on, left, how)) = &mut *end else { return (count, None) };
        if *on != sender && *left > 0 {
            return (count, None);
        }
        let admitted = if *on == sender { count.min(*left) } else { 0 };
        *left -= admitted;
        let ended = admitted < count || *left == 0;
        (admitted, ended.then_some(*how))
    }
}

async fn carry(state: Arc<State>, sender: Sender, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut cut = state.cut.subscribe();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = tokio::select! {
            count = from.read(&mut bytes) => count.unwrap_or(0),
            _ = cut.changed() => 0,
        };
        if count == 0 {
            return;
        }
        let (admitted, end) = state.admit(sender, count);
        if to.write_all(&bytes[..admitted]).await.is_err() {
            return;
        }
        match end {
            None => {}
            Some(End::Cut) => {
                state.cut.send_modify(|cuts| *cuts += 1);
                return;
            }
            Some(End::Silence) => {
                let _ = cut.changed().await;
                return;
            }
        }
    }
}
