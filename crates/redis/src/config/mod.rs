//! Where a Redis server is and how to speak to it. [`RedisStore::connect`](crate::RedisStore::connect) takes it; URLs are read by [`url`].
//!
//! Invariant: no secret is printed by `Debug` or `Display`.

mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandog_core::ledger::Limits;
use bandog_core::store::{StoreError, StoreErrorKind};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
    TlsCertificates,
};

use crate::keys::{DEFAULT_PREFIX, Keys};

pub use url::{OPTIONS, UrlError};

/// A silent peer is given up after this long, so that a dead host is noticed.
const SILENCE: Duration = Duration::from_secs(5);

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
        }
    }

    /// What the store allows. Every client of one prefix must use the same.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::new(self.prefix.clone())
    }

    /// The client of the driver beneath; reads the certificates.
    pub(crate) fn client(&self) -> Result<Client, StoreError> {
        let wrong = |error: redis::RedisError| self.unfit(format!("{self} cannot be used: {error}"));
        let info = self.info().map_err(wrong)?;
        if !matches!(self.address, Address::Tls(..)) {
            return Client::open(info).map_err(wrong);
        }
        choose_provider();
        let client_tls = match (&self.tls.cert, &self.tls.key) {
            (Some(cert), Some(key)) => {
                Some(ClientTlsConfig { client_cert: self.read(cert)?, client_key: self.read(key)? })
            }
            _ => None,
        };
        let root_cert = self.tls.ca.as_deref().map(|ca| self.read(ca)).transpose()?;
        Client::build_with_tls(info, TlsCertificates { client_tls, root_cert }).map_err(wrong)
    }

    fn info(&self) -> redis::RedisResult<ConnectionInfo> {
        let address = match self.address.clone() {
            Address::Tcp(host, port) => ConnectionAddr::Tcp(host, port),
            Address::Tls(host, port) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            Address::Unix(path) => ConnectionAddr::Unix(path),
        };
        // The newer protocol: it tells when a connection is gone, and an inbox may be asked for its server's run.
        let mut login = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3).set_db(self.db);
        login = login.set_skip_set_lib_name();
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(&password.0);
        }
        let alive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 5).with_retries(5);
        let tcp = TcpSettings::default().set_nodelay(self.nodelay).set_keepalive(alive);
        #[cfg(target_os = "linux")]
        let tcp = tcp.set_user_timeout(SILENCE * 2);
        Ok(address.into_connection_info()?.set_redis_settings(login).set_tcp_settings(tcp))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        std::fs::read(path).map_err(|error| self.unfit(format!("cannot read {}: {error}", path.display())))
    }

    fn unfit(&self, message: String) -> StoreError {
        StoreError::not_executed(StoreErrorKind::Unfit, message)
    }
}

/// Two providers in one program and none chosen would be a panic at the first connection.
fn choose_provider() {
    use rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster: theirs is as good.
        drop(ring::default_provider().install_default());
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
