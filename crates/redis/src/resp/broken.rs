//! Why there is no answer. [`classify`](crate::topology) says what that means for an operation.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why a connection could not be opened, or ended. Everybody who waits on it is told the same.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Broken {
    /// The network, the system or TLS.
    #[error("{0}")]
    Io(Arc<io::Error>),
    /// What came is no RESP, or more of it than anybody would send.
    #[error("its answer is none of Redis: {0}")]
    Garbage(&'static str),
    /// The server's own word, where it lets nobody in.
    #[error("{0}")]
    Refused(String),
    /// There was no answer in time.
    #[error("no answer within {}", humantime::format_duration(*.0))]
    Silent(Duration),
    /// The connection had ended before: nothing was sent.
    #[error("the connection has ended")]
    Unsent,
}

impl Broken {
    /// The other end is gone.
    pub(crate) fn closed() -> Self {
        io::Error::from(io::ErrorKind::BrokenPipe).into()
    }

    /// Whether TLS did not like the other end: that does not get better by trying again.
    pub(crate) fn is_mistrust(&self) -> bool {
        let Self::Io(error) = self else { return false };
        error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}
