//! The socket between wrapper and supervisor, with packets that arrive whole. Used by both sides.
//!
//! It has a name in the abstract namespace because handing an open file to a new process under a known number takes
//! unsafe code. The name is no secret: each side asks the kernel who the other one is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, geteuid};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};

/// The largest packet: a variable may have 128 KiB (the system's limit for one string), and its key.
pub(super) const LARGEST: usize = 256 * 1024;
/// Strangers may knock as well; a few of them must not keep the supervisor out.
const BACKLOG: i32 = 16;

/// Where the wrapper waits for its supervisor.
#[derive(Debug)]
pub(super) struct Listener(UnixListener);

impl Listener {
    /// Listens under `name`.
    pub(super) fn bind(name: &str) -> io::Result<Self> {
        let socket = socket()?;
        net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        net::listen(&socket, BACKLOG)?;
        // Tokio knows no packets, but waiting for them is the same.
        Ok(Self(UnixListener::from_std(socket.into())?))
    }

    /// The next connection that comes from `peer`; others are closed. Cancel-safe.
    pub(super) async fn accept(&self, peer: Pid) -> io::Result<Link<UnixStream>> {
        loop {
            let (socket, _) = self.0.accept().await?;
            if is_from(&socket, peer) {
                return Ok(Link(socket));
            }
        }
    }
}

/// One end of the conversation: the supervisor's plain socket, or the wrapper's, which tokio watches.
#[derive(Debug)]
pub(super) struct Link<S>(S);

impl Link<OwnedFd> {
    /// Connects to `name`, if it is `peer` that listens there.
    pub(super) fn connect(name: &str, peer: Pid) -> io::Result<Self> {
        let socket = socket()?;
        net::connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        if !is_from(&socket, peer) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "somebody else listens there"));
        }
        Ok(Self(socket))
    }
}

impl Link<UnixStream> {
    /// Sends one packet, and waits if the supervisor is slow.
    pub(super) async fn send_all(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            self.0.writable().await?;
            match self.0.try_io(Interest::WRITABLE, || self.send(packet)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
        }
    }

    /// Waits for one packet, as [`receive`](Self::receive). Cancel-safe.
    pub(super) async fn wait(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.0.readable().await?;
            match self.0.try_io(Interest::READABLE, || self.receive(buffer)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
    }
}

impl<S: AsFd> Link<S> {
    /// Sends one packet, all of it or nothing. Never waits.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            match net::send(&self.0, packet, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes one packet into `buffer` and says how long it is: nothing at all means that the other side is gone. Never
    /// waits.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match net::recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(length),
                // Said once, if the other side left with packets unread; its own last ones are still to be had.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<S: AsFd> AsFd for Link<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

fn is_from(socket: impl AsFd, peer: Pid) -> bool {
    socket_peercred(socket).is_ok_and(|credentials| credentials.pid == peer && credentials.uid == geteuid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::time::Duration;

    #[tokio::test]
    async fn packets_arrive_whole_and_the_end_is_seen() {
        let name = format!("bandog-test-link-{}", getpid());
        let listener = Listener::bind(&name).unwrap();
        let near = Link::connect(&name, getpid()).unwrap();
        let far = listener.accept(getpid()).await.unwrap();
        near.send(b"one").unwrap();
        near.send(b"two").unwrap();
        let mut buffer = [0; 16];
        for word in [b"one", b"two"] {
            let length = far.wait(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], word);
        }
        assert_eq!(far.receive(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        far.send_all(&[7; LARGEST / 2]).await.unwrap();
        assert_eq!(near.receive(&mut vec![0; LARGEST]).unwrap(), LARGEST / 2);
        drop(near);
        assert_eq!(far.wait(&mut buffer).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn the_last_word_arrives_though_the_other_side_left_without_listening() {
        let name = format!("bandog-test-last-{}", getpid());
        let listener = Listener::bind(&name).unwrap();
        let near = Link::connect(&name, getpid()).unwrap();
        let far = listener.accept(getpid()).await.unwrap();
        far.send(b"unheard").unwrap();
        near.send(b"last").unwrap();
        drop(near);
        let mut buffer = [0; 16];
        assert_eq!(far.wait(&mut buffer).await.unwrap(), 4);
        assert_eq!(far.wait(&mut buffer).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn strangers_are_turned_away() {
        let name = format!("bandog-test-strangers-{}", getpid());
        let stranger = Pid::from_raw(1).unwrap();
        let listener = Listener::bind(&name).unwrap();
        let near = Link::connect(&name, getpid()).unwrap();
        let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept(stranger)).await;
        assert!(accepted.is_err(), "{accepted:?}");
        assert_eq!(near.receive(&mut [0; 16]).unwrap(), 0);
        assert!(Link::connect(&name, stranger).is_err());
    }
}
