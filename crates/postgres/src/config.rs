//! From a URL to a [`PostgresConfig`]: hosts, login, database, the store's own options, and those that it leaves to the library.
//!
//! # Invariants
//! - Nothing here repeats a password, nor a part of a URL that could be one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bandog_core::ledger::Limits;
use bandog_core::text::discreet;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use crate::schema;

/// The options of a URL that are the store's own.
pub const OPTIONS: &[&str] = &["schema", "host", "sslmode", "ca", "application_name", "connect_timeout", "prepare"];

const PORT: u16 = 5432;

/// What is shown of a database or a directory can be read again.
const SHOWN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'/');

/// Which database, and how it is reached.
#[derive(Clone)]
pub struct PostgresConfig {
    pub(crate) server: tokio_postgres::Config,
    pub(crate) schema: String,
    /// Whom to trust, in place of those whom the machine trusts: a file in PEM.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) connect_timeout: Duration,
    /// Whether statements are made known to a connection; not behind a pooler that hands connections on.
    pub(crate) prepares: bool,
    pub(crate) limits: Limits,
    places: Vec<String>,
    database: String,
}

/// What is wrong with a URL. It carries no part of the URL that could hold a password, also where the password is not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// Another scheme.
    Scheme,
    /// Not an address.
    Address(&'static str),
    /// An option with a wrong value.
    Value {
        /// The option.
        option: &'static str,
        /// As given, unless it may hold a password.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl PostgresConfig {
    /// Reads `postgres://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/[DATABASE]`, also `postgresql://`, with options behind a question
    /// mark. Of several hosts the one is used that can be written to. Without a host, `?host=DIRECTORY` names that of a socket. Options
    /// that are not in [`OPTIONS`] are given back.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong, without repeating the address.
    ///
    /// ```
    /// use bandog_postgres::PostgresConfig;
    /// let (config, rest) = PostgresConfig::from_url("postgres://ann:s3cret@a,b:5433/shop?schema=locks&lease=10s")?;
    /// assert_eq!(config.to_string(), "postgres://a:5432,b:5433/shop?schema=locks");
    /// assert_eq!(rest, [("lease".to_owned(), "10s".to_owned())]);
    /// # Ok::<(), bandog_postgres::UrlError>(())
    /// ```
    pub fn from_url(url: &str) -> Result<(Self, Vec<(String, String)>), UrlError> {
        let (whole, query) = url.split_once('?').unwrap_or((url, ""));
        let Some(("postgres" | "postgresql", address)) = whole.split_once("://") else { return Err(UrlError::Scheme) };
        if address.contains('#')
            || address.split_once('/').is_some_and(|(_, path)| path.contains('@'))
            || query.contains('@')
        {
            return Err(UrlError::Address(STRAY));
        }
        let (authority, database) = address.split_once('/').unwrap_or((address, ""));
        let (login, hosts) =
            authority.rsplit_once('@').map_or((None, authority), |(login, hosts)| (Some(login), hosts));
        let mut config = Self::blank();
        for host in hosts.split(',').filter(|_| !hosts.is_empty()) {
            config.add_host(host)?;
        }
        config.log_in(login.unwrap_or_default(), &decoded(database)?)?;
        let rest = config.take_options(query)?;
        if config.places.is_empty() {
            return Err(UrlError::Address(
                "has no host; for a socket give its directory: postgres:///DATABASE?host=/run/postgresql",
            ));
        }
        Ok((config, rest))
    }

    /// What the store allows. Every client of one schema must use the same.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    fn blank() -> Self {
        let mut server = tokio_postgres::Config::new();
        server.application_name("bandog").target_session_attrs(TargetSessionAttrs::ReadWrite);
        Self {
            server,
            schema: schema::DEFAULT.to_owned(),
            ca: None,
            connect_timeout: Duration::from_secs(2),
            prepares: true,
            limits: Limits::default(),
            places: Vec::new(),
            database: String::new(),
        }
    }

    fn add_host(&mut self, host: &str) -> Result<(), UrlError> {
        const WRONG: UrlError = UrlError::Address("has no host, or a port that is no number from 1 to 65535");
        let (host, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(WRONG)?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(WRONG)?) })
            }
            None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
        };
        let port: u16 = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| WRONG))?;
        let host = decoded(host)?;
        let is_word = host.chars().all(|sign| sign.is_alphanumeric() || "-._:".contains(sign));
        if host.is_empty() || !is_word || port == 0 {
            return Err(WRONG);
        }
        self.places.push(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") });
        self.server.host(host).port(port);
        Ok(())
    }

    fn log_in(&mut self, login: &str, database: &str) -> Result<(), UrlError> {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (user, password) = (decoded(user)?, decoded(password)?);
        if !user.is_empty() {
            self.server.user(user);
        }
        if !password.is_empty() {
            self.server.password(password);
        }
        if !database.is_empty() {
            self.server.dbname(database);
        }
        database.clone_into(&mut self.database);
        Ok(())
    }

    fn take_options(&mut self, query: &str) -> Result<Vec<(String, String)>, UrlError> {
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (option, value) = pair.split_once('=').unwrap_or((pair, ""));
            match OPTIONS.iter().find(|known| **known == option) {
                Some(option) => self.set(option, decoded(value)?)?,
                None => rest.push((option.to_owned(), decoded(value)?)),
            }
        }
        Ok(rest)
    }

    fn set(&mut self, option: &'static str, value: String) -> Result<(), UrlError> {
        let wrong = |expected| UrlError::Value { option, value: discreet(&value).to_owned(), expected };
        match option {
            "schema" if schema::is_plain(&value) => self.schema = value,
            "schema" => return Err(wrong("a name of small letters, digits and _")),
            "host" if value.starts_with('/') && self.places.is_empty() => {
                self.places.push(value.clone());
                self.server.host_path(Path::new(&value));
            }
            "host" => return Err(wrong("the directory of a socket, in place of a host")),
            "sslmode" => {
                self.server.ssl_mode(match &*value {
                    "disable" => SslMode::Disable,
                    "prefer" => SslMode::Prefer,
                    "require" | "verify-full" => SslMode::Require,
                    _ => return Err(wrong("disable, prefer, require or verify-full")),
                });
            }
            "prepare" => {
                self.prepares = match &*value {
                    "true" | "1" | "yes" | "" => true,
                    "false" | "0" | "no" => false,
                    _ => return Err(wrong("true or false")),
                }
            }
            "ca" => self.ca = Some(PathBuf::from(value)),
            "application_name" => {
                self.server.application_name(value);
            }
            _ => {
                let seconds = value.strip_suffix('s').unwrap_or(&value).parse().ok();
                let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.connect_timeout =
                    length.filter(|length| !length.is_zero()).ok_or_else(|| wrong("a number of seconds"))?;
            }
        }
        Ok(())
    }
}

/// What is most likely wrong where there is an @ behind the hosts.
const STRAY: &str = "has a # or an @ behind its hosts, and cannot be told from its password: in a password / is written %2f, ? is %3f, # is %23, and @ is %40";

fn decoded(text: &str) -> Result<String, UrlError> {
    let wrong = |_| UrlError::Address("has bytes that are not text");
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(wrong)
}

impl fmt::Display for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (places, schema) = (self.places.join(","), &self.schema);
        let database = utf8_percent_encode(&self.database, SHOWN);
        let separator = if places.starts_with('/') {
            format!("/{database}?host={}&", utf8_percent_encode(&places, SHOWN))
        } else {
            format!("{places}/{database}?")
        };
        write!(f, "postgres://{separator}schema={schema}")
    }
}

impl fmt::Debug for PostgresConfig {
    // The server's own configuration holds the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresConfig({self})")
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("the URL of a PostgreSQL database begins with postgres://"),
            Self::Address(why) => write!(f, "the address of a PostgreSQL URL {why}"),
            Self::Value { option, value, expected } => write!(f, "{option}={value:?} is not {expected}"),
        }
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<PostgresConfig, UrlError> {
        PostgresConfig::from_url(url).map(|(config, _)| config)
    }

    #[test]
    fn url_names_hosts_database_and_schema() {
        for (url, shown) in [
            ("postgres://h", "postgres://h:5432/?schema=bandog"),
            ("postgresql://ann@h:1/db", "postgres://h:1/db?schema=bandog"),
            ("postgres://ann:p%40ss@a,b:2,[::1]:3/db?schema=x", "postgres://a:5432,b:2,[::1]:3/db?schema=x"),
            ("postgres://h/a%3fb", "postgres://h:5432/a%3Fb?schema=bandog"),
            ("postgres:///db?host=/run/postgresql", "postgres:///db?host=/run/postgresql&schema=bandog"),
        ] {
            assert_eq!(read(url).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn login_is_decoded_and_not_shown() {
        let config = read("postgres://ann:p%40s%2fs@h/db").unwrap();
        assert_eq!((config.server.get_user(), config.server.get_password()), (Some("ann"), Some(&b"p@s/s"[..])));
        assert!(!format!("{config} {config:?}").contains("p@s"), "{config:?}");
    }

    #[test]
    fn wrong_url_is_refused_without_its_password() {
        for url in [
            "postgres//:s3cret@h",
            "redis://:s3cret@h",
            "postgres://",
            "postgres://:s3cret@",
            "postgres://:s3cret@h:port",
            "postgres://:s3cret@a%2cb",
            "postgres://:s3/cret@h",
            "postgres://ann:s3?cret@h/db",
            "postgres://ann:s3#cret@h/db",
            "postgres://ann:s3cret@h/db?schema=a;b",
            "postgres://ann:s3cret@h/db?sslmode=maybe",
            "postgres://ann:s3cret@h/db?connect_timeout=soon",
            "postgres://ann:s3cret@h/db?host=/run",
        ] {
            let error = read(url).expect_err(url);
            assert!(!format!("{error} {error:?}").contains("s3"), "{error}");
        }
    }
}
