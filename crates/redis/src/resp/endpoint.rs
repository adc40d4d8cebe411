//! The address of a server, and the login for it. Made from a [configuration](crate::RedisConfig) once, and opened for every
//! connection.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;

use tokio::net::{TcpStream, UnixStream, lookup_host};

use crate::config::{Address, Secret};
use crate::value::Value;

use super::driver::PushHandler;
use super::slot::Pending;
use super::socket::{Stream, prepare};
use super::tls::{Files, Tls};
use super::{Broken, Command, Deadline, Packed, RespConnection, Step, Unopened};

/// The address of a server, and the login.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: Address,
    user: Option<String>,
    password: Option<Secret>,
    db: i64,
    nodelay: bool,
    tls: Option<Tls>,
}

impl Endpoint {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, user: None, password: None, db: 0, nodelay: true, tls: None }
    }

    pub(crate) fn login(mut self, user: Option<String>, password: Option<Secret>, db: i64) -> Self {
        (self.user, self.password, self.db) = (user, password, db);
        self
    }

    pub(crate) fn nodelay(mut self, nodelay: bool) -> Self {
        self.nodelay = nodelay;
        self
    }

    /// The error says what is wrong with the certificates, or with the host name.
    pub(crate) fn certificates(mut self, files: Files) -> Result<Self, String> {
        if let Address::Tls(host, _) = &self.address {
            self.tls = Some(Tls::new(host, files)?);
        }
        Ok(self)
    }

    /// Opens a connection on the current runtime and logs in, before the deadline.
    pub(crate) async fn open(
        &self,
        handler: Option<PushHandler>,
        deadline: &Deadline,
    ) -> Result<RespConnection, Unopened> {
        let name = if handler.is_some() { "bandog-news" } else { "bandog" };
        let (connection, driver) = RespConnection::new(self.connect(deadline).await?, handler);
        let greeted = connection.send(&self.hello(name));
        let selected = self.select().map(|select| connection.send(&select));
        // Spawned after HELLO was queued: a server that rejects the connection sends an error unasked, which must match HELLO.
        drop(tokio::spawn(driver));
        deadline.step(Step::Hello, welcomed(greeted, |text| self.unwelcome(text))).await?;
        if let Some(selected) = selected {
            deadline.step(Step::Select, welcomed(selected, |text| self.unwelcome(text))).await?;
        }
        Ok(connection)
    }

    async fn connect(&self, deadline: &Deadline) -> Result<Stream, Unopened> {
        let (host, port) = match &self.address {
            Address::Unix(path) => {
                let connected = async { Ok(UnixStream::connect(path).await?) };
                return Ok(deadline.step(Step::Connect, connected).await?.into());
            }
            Address::Tls(host, port) | Address::Tcp(host, port) => (host, *port),
        };
        let stream = deadline.step(Step::Connect, self.connect_tcp(host, port)).await?;
        match (&self.address, &self.tls) {
            (Address::Tls(..), Some(tls)) => {
                let agreed = async { Ok(tls.connect(stream).await?) };
                Ok(deadline.step(Step::Tls, agreed).await?.into())
            }
            (Address::Tls(..), None) => {
                let why = io::Error::other("no certificates were read").into();
                Err(Unopened { why, step: Step::Tls })
            }
            _ => Ok(stream.into()),
        }
    }

    /// Connects to the address of the host that answers first.
    async fn connect_tcp(&self, host: &str, port: u16) -> Result<TcpStream, Broken> {
        let connect = |address: SocketAddr| -> Connecting { Box::pin(TcpStream::connect(address)) };
        let stream = first(lookup_host((host, port)).await?.map(connect).collect()).await?;
        prepare(&stream, self.nodelay)?;
        Ok(stream)
    }

    // The newer protocol: an inbox may be asked for its server's run on the connection that it listens at. By the name operators
    // find it in CLIENT LIST.
    fn hello(&self, name: &str) -> Packed {
        let mut hello = Command::new("HELLO").arg("3");
        if let Some(password) = &self.password {
            hello = hello.arg("AUTH").arg(self.user.as_deref().unwrap_or("default")).arg(&password.0);
        }
        hello.arg("SETNAME").arg(name).into()
    }

    // Servers before 6.0 do not know the word. Others may repeat what they were given.
    fn unwelcome(&self, text: String) -> Broken {
        if text.starts_with("ERR unknown command") {
            return Broken::Garbage("it does not speak RESP3");
        }
        Broken::Refused(match &self.password {
            Some(password) => password.hide_in(text),
            None => text,
        })
    }

    fn select(&self) -> Option<Packed> {
        (self.db != 0).then(|| Command::new("SELECT").arg(self.db.to_string()).into())
    }
}

/// Waits for an answer that is no refusal.
async fn welcomed(answered: Pending, refused: impl Fn(String) -> Broken) -> Result<(), Broken> {
    match answered.await?.one() {
        Value::Error(text) => Err(refused(text)),
        _ => Ok(()),
    }
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// The first that succeeds; the last error if none does.
async fn first(mut connecting: Vec<Connecting>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address found for the host");
    poll_fn(move |context| {
        let mut at = 0;
        while let Some(one) = connecting.get_mut(at) {
            match one.as_mut().poll(context) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                Poll::Ready(Err(error)) => {
                    last = error;
                    drop(connecting.remove(at));
                }
                Poll::Pending => at += 1,
            }
        }
        if connecting.is_empty() {
            return Poll::Ready(Err(std::mem::replace(&mut last, io::ErrorKind::NotFound.into())));
        }
        Poll::Pending
    })
    .await
}

// The password and the certificates stay out of it.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("address", &self.address).finish_non_exhaustive()
    }
}
