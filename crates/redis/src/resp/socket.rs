//! The stream beneath a connection: TCP, a socket of this machine, or TLS. Opened by the [endpoint](super::endpoint).
//!
//! Plain streams can be written to by anybody who has a [`Writer`], without waiting; TLS by the driver alone.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_rustls::client::TlsStream;

/// A silent peer is given up after this long, so that a dead host is noticed.
const SILENCE: Duration = Duration::from_secs(5);

/// What is read at once. Hundreds of answers to calls fit.
const WINDOW: usize = 32 << 10;

pub(super) enum Stream {
    Tcp(tcp::OwnedReadHalf, Writer),
    Unix(unix::OwnedReadHalf, Writer),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The end that is written to.
#[derive(Debug, Clone)]
pub(super) enum Writer {
    Tcp(Arc<tcp::OwnedWriteHalf>),
    Unix(Arc<unix::OwnedWriteHalf>),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self::Tcp(read, Writer::Tcp(Arc::new(write)))
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        Self::Unix(read, Writer::Unix(Arc::new(write)))
    }
}

impl From<TlsStream<TcpStream>> for Stream {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        Self::Tls(Box::new(stream))
    }
}

impl Stream {
    /// The end for callers that write, where there is one.
    pub(super) fn writer(&self) -> Option<Writer> {
        match self {
            Self::Tcp(_, writer) | Self::Unix(_, writer) => Some(writer.clone()),
            Self::Tls(_) => None,
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(read, _) => Pin::new(read).poll_read(context, into),
            Self::Unix(read, _) => Pin::new(read).poll_read(context, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }

    /// Reads what is there now, without asking the runtime, which may have another thread sleep until there is news. Nothing from TLS.
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let (_, count) = match self {
            Self::Tcp(read, _) => recv(AsRef::<TcpStream>::as_ref(read), into, RecvFlags::DONTWAIT)?,
            Self::Unix(read, _) => recv(AsRef::<UnixStream>::as_ref(read), into, RecvFlags::DONTWAIT)?,
            Self::Tls(_) => return Err(io::ErrorKind::WouldBlock.into()),
        };
        Ok(count)
    }

    /// Writes a part of the bytes, at least one of them.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self {
            Self::Tcp(_, writer) | Self::Unix(_, writer) => ready!(writer.poll_write(context, bytes)),
            Self::Tls(stream) => ready!(Pin::new(stream).poll_write(context, bytes)),
        };
        Poll::Ready(
            written.and_then(|written| if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }),
        )
    }

    /// Sends what was written on its way.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(..) | Self::Unix(..) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }
}

impl Writer {
    /// Writes what fits now.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(writer) => writer.try_write(bytes),
            Self::Unix(writer) => writer.try_write(bytes),
        }
    }

    fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
            ready!(match self {
                Self::Tcp(writer) => writer.as_ref().as_ref().poll_write_ready(context),
                Self::Unix(writer) => writer.as_ref().as_ref().poll_write_ready(context),
            })?;
        }
    }
}

/// Bytes that were read and not understood yet.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Window {
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// So many are understood.
    pub(super) fn take(&mut self, count: usize) {
        self.start += count;
    }

    /// Reads behind what is there.
    pub(super) fn poll_fill(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.make_room();
        let mut into = ReadBuf::new(self.bytes.get_mut(self.end..).unwrap_or_default());
        ready!(stream.poll_read(context, &mut into))?;
        let count = into.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// The same for what is there now.
    pub(super) fn try_fill(&mut self, stream: &Stream) -> io::Result<usize> {
        self.make_room();
        let count = stream.try_read(self.bytes.get_mut(self.end..).unwrap_or_default())?;
        self.end += count;
        Ok(count)
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // A large answer is seldom followed by another.
            if self.bytes.len() != WINDOW {
                self.bytes = vec![0; WINDOW];
            }
        } else if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end > self.bytes.len() / 2 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
    }
}

/// Small commands are not held back, and a host that is gone is found out.
pub(super) fn prepare(stream: &TcpStream, nodelay: bool) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(nodelay)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 5)?;
    sockopt::set_tcp_keepcnt(stream, 5)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, u32::try_from(SILENCE.as_millis() * 2).unwrap_or(u32::MAX))?;
    Ok(())
}
