//! Where a Redis server is and how to speak to it. [`RedisStore::connect`](crate::RedisStore::connect) takes it; URLs are read by [`url`].
//!
//! Invariant: no secret is printed by `Debug` or `Display`.

mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandog_core::format::Format;
use bandog_core::ledger::Limits;
use bandog_core::store::{StoreError, StoreErrorKind};

use crate::keys::{DEFAULT_PREFIX, Keys};
use crate::resp::{Endpoint, Files};

pub use url::{OPTIONS, UrlError};

/// Where a server is and how to speak to it.
///
/// ```
/// use bandog_redis::RedisConfig;
/// let (config, rest) = RedisConfig::from_url("redis://app:secret@db.example/2?prefix=shop:&lease=10s")?;
/// assert_eq!(config.to_string(), "redis://db.example:6379/2");
/// assert_eq!(rest, [("lease".to_owned(), "10s".to_owned())]);
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok::<(), bandog_redis::UrlError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RedisConfig {
    pub(crate) address: Address,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) db: i64,
    pub(crate) prefix: String,
    pub(crate) nodelay: bool,
    pub(crate) strict: bool,
    pub(crate) announce: bool,
    pub(crate) tls: Tls,
    pub(crate) connect_timeout: Duration,
    pub(crate) limits: Limits,
    pub(crate) format: Format,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(String, u16),
    Tls(String, u16),
    Unix(PathBuf),
}

/// Files with certificates, in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// A password that does not print.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

/// So many signs of a password in a row give it away.
const PIECE: usize = 4;

impl Secret {
    /// What a server said, fit to be told: of a text that repeats the password, or a piece of it, only the word that says what sort of
    /// error it is.
    pub(crate) fn hide_in(&self, text: String) -> String {
        let signs: Vec<char> = self.0.chars().collect();
        let pieces: Vec<String> = signs.windows(PIECE.min(signs.len()).max(1)).map(String::from_iter).collect();
        let gives_away = |text: &str| pieces.iter().any(|piece| text.contains(piece));
        if !gives_away(&text) {
            return text;
        }
        let word = text.split_whitespace().next().filter(|word| !gives_away(word)).unwrap_or("ERR");
        format!("{word} (what else it said repeats the password)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl RedisConfig {
    pub(crate) fn new(address: Address) -> Self {
        Self {
            address,
            user: None,
            password: None,
            db: 0,
            prefix: DEFAULT_PREFIX.to_owned(),
            nodelay: true,
            strict: false,
            announce: false,
            tls: Tls::default(),
            connect_timeout: Duration::from_secs(2),
            limits: Limits::default(),
            format: Format::default(),
        }
    }

    /// What the store allows. Every client of one prefix must use the same.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// In which format records and pushes are written; the newest unless told otherwise. Whatever is read may be in either.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// As whom the server knows us: a user without a password is not logged in.
    pub(crate) fn login(&self) -> &str {
        self.user.as_deref().filter(|_| self.password.is_some()).unwrap_or("default")
    }

    /// What the server said, without our password.
    pub(crate) fn quoted(&self, text: &str) -> String {
        self.password.as_ref().map_or_else(|| text.to_owned(), |password| password.hide_in(text.to_owned()))
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::new(self.prefix.clone())
    }

    /// The way to the server; reads the certificates.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, StoreError> {
        let endpoint = Endpoint::new(self.address.clone()).nodelay(self.nodelay);
        let endpoint = endpoint.login(self.user.clone(), self.password.clone(), self.db);
        if !matches!(self.address, Address::Tls(..)) {
            return Ok(endpoint);
        }
        let client = match (&self.tls.cert, &self.tls.key) {
            (Some(cert), Some(key)) => Some((self.read(cert)?, self.read(key)?)),
            _ => None,
        };
        let ca = self.tls.ca.as_deref().map(|ca| self.read(ca)).transpose()?;
        let wrong = |why: String| self.unfit(format!("{self} cannot be used: {why}"));
        endpoint.certificates(Files { ca, client }).map_err(wrong)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        std::fs::read(path).map_err(|error| self.unfit(format!("cannot read {}: {error}", path.display())))
    }

    fn unfit(&self, message: String) -> StoreError {
        StoreError::not_executed(StoreErrorKind::Unfit, message)
    }
}

impl fmt::Display for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let db = self.db;
        let host = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match &self.address {
            Address::Tcp(name, port) => write!(f, "redis://{}:{port}/{db}", host(name)),
            Address::Tls(name, port) => write!(f, "rediss://{}:{port}/{db}", host(name)),
            Address::Unix(path) => write!(f, "redis+unix://{}?db={db}", path.display()),
        }
    }
}
