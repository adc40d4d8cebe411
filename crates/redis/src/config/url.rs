//! From a URL to a [`RedisConfig`]: the address, the login, the store's own options, and those that it leaves to the library.

use std::path::PathBuf;
use std::time::Duration;

use bandog_core::text::discreet;
use percent_encoding::percent_decode_str;

use bandog_core::format::Format;

use super::{Address, RedisConfig, Secret};

/// The options of a URL that are the store's own.
pub const OPTIONS: &[&str] =
    &["prefix", "db", "nodelay", "strict", "announce", "format", "ca", "cert", "key", "connect_timeout"];

const PORT: u16 = 6379;

/// What is wrong with a URL. It carries no part of the URL that could hold a password, also where the password is not escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Another scheme.
    #[error("the URL of a Redis server begins with redis://, rediss:// or redis+unix://")]
    Scheme,
    /// Not an address.
    #[error("the address of a Redis URL {0}")]
    Address(&'static str),
    /// An option with a wrong value.
    #[error("{option}={value:?} is not {expected}")]
    Value {
        /// The option.
        option: &'static str,
        /// As given, unless it may hold a password.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// What is most likely wrong where there is an @ behind the address.
const STRAY_AT: &str =
    "cannot be told from its password: in a password / is written %2f, ? is %3f, # is %23, and @ is %40";

/// Whether there is an @ behind the host, so that what looks like a path or an option may be a piece of a password. The path of a
/// socket may have one, if no colon is before it.
fn has_stray_at(url: &str) -> bool {
    let (scheme, address) = url.split_once("://").unwrap_or(("", url));
    let Some((_, behind)) = address.split_once(['/', '?', '#']) else { return false };
    let is_after_colon = || behind.rfind('@') > behind.find(':') && behind.contains(':');
    behind.contains('@') && (scheme != "redis+unix" || is_after_colon())
}

impl RedisConfig {
    /// Reads `redis://[[user]:password@]host[:port][/db]`, `rediss://` alike for TLS, or
    /// `redis+unix://[[user]:password@]/path`, each with options behind a question mark. User, password, path and
    /// options may be percent-encoded. Options that are not in [`OPTIONS`] are given back.
    ///
    /// # Errors
    /// [`UrlError`] says what is wrong, without repeating the address.
    pub fn from_url(url: &str) -> Result<(Self, Vec<(String, String)>), UrlError> {
        // Even if all could be read: the name of a host is printed, and might be the beginning of a password.
        if has_stray_at(url) { Err(UrlError::Address(STRAY_AT)) } else { Self::read_url(url) }
    }

    fn read_url(url: &str) -> Result<(Self, Vec<(String, String)>), UrlError> {
        let (whole, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, address) = whole.split_once("://").ok_or(UrlError::Scheme)?;
        if address.contains('#') {
            return Err(UrlError::Address("has a # in it; in a password it is written %23"));
        }
        let (authority, path) = address.split_once('/').map_or((address, None), |(host, path)| (host, Some(path)));
        let (login, host) = authority.rsplit_once('@').map_or((None, authority), |(login, host)| (Some(login), host));
        let mut config = match scheme {
            "redis" | "rediss" => networked(scheme == "rediss", host, path.unwrap_or(""))?,
            "redis+unix" => local(host, path)?,
            _ => return Err(UrlError::Scheme),
        };
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            config.user = given(decoded(user)?);
            config.password = given(decoded(password)?).map(Secret);
        }
        let rest = config.take_options(query)?;
        Ok((config, rest))
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
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err(UrlError::Address(
                "has a client certificate without its key, or a key without its certificate",
            ));
        }
        if !matches!(self.address, Address::Tls(..)) && (self.tls.ca.is_some() || self.tls.cert.is_some()) {
            return Err(UrlError::Address("has certificates but no TLS; use rediss://"));
        }
        Ok(rest)
    }

    fn set(&mut self, option: &'static str, value: String) -> Result<(), UrlError> {
        let path = |value: &str| Some(PathBuf::from(value));
        match option {
            "prefix" => self.prefix = value,
            "db" => self.db = number(option, &value)?,
            "nodelay" => self.nodelay = flag(option, value)?,
            "strict" => self.strict = flag(option, value)?,
            "announce" => self.announce = flag(option, value)?,
            "format" => self.format = format(option, value)?,
            "ca" => self.tls.ca = path(&value),
            "cert" => self.tls.cert = path(&value),
            "key" => self.tls.key = path(&value),
            _ => self.connect_timeout = duration(option, value)?,
        }
        Ok(())
    }
}

fn networked(tls: bool, authority: &str, path: &str) -> Result<RedisConfig, UrlError> {
    const NO_DB: UrlError = UrlError::Address("has a path that is not the number of a database");
    const WRONG: UrlError = UrlError::Address("has no host, or a port that is no number from 1 to 65535");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(WRONG)?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(WRONG)?) })
        }
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| WRONG))?;
    if host.is_empty() || port == 0 {
        return Err(WRONG);
    }
    let host = decoded(host)?;
    let mut config = RedisConfig::new(if tls { Address::Tls(host, port) } else { Address::Tcp(host, port) });
    config.db = match path {
        "" => 0,
        path => path.parse::<u32>().map(i64::from).map_err(|_| NO_DB)?,
    };
    Ok(config)
}

fn local(host: &str, path: Option<&str>) -> Result<RedisConfig, UrlError> {
    match path.filter(|path| host.is_empty() && !path.is_empty()) {
        Some(path) => Ok(RedisConfig::new(Address::Unix(PathBuf::from(format!("/{}", decoded(path)?))))),
        None => Err(UrlError::Address("has no path to a socket, such as redis+unix:///run/redis.sock")),
    }
}

fn decoded(text: &str) -> Result<String, UrlError> {
    let wrong = |_| UrlError::Address("has bytes that are not text");
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(wrong)
}

fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn number(option: &'static str, value: &str) -> Result<i64, UrlError> {
    let expected = "the number of a database";
    let wrong = || UrlError::Value { option, value: discreet(value).to_owned(), expected };
    value.parse::<u32>().map(i64::from).map_err(|_| wrong())
}

fn format(option: &'static str, value: String) -> Result<Format, UrlError> {
    // Both numbers of this build; the test beside it compares them.
    value.parse().map_err(|_| UrlError::Value { option, value, expected: "2 or 3" })
}

fn flag(option: &'static str, value: String) -> Result<bool, UrlError> {
    match value.as_str() {
        "true" | "1" | "yes" | "" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err(UrlError::Value { option, value: discreet(&value).to_owned(), expected: "true or false" }),
    }
}

fn duration(option: &'static str, value: String) -> Result<Duration, UrlError> {
    let seconds = || value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match humantime::parse_duration(&value).ok().or_else(seconds) {
        Some(duration) if !duration.is_zero() => Ok(duration),
        _ => {
            let expected = "a duration such as 500ms or 2s, or seconds";
            Err(UrlError::Value { option, value: discreet(&value).to_owned(), expected })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_one_of_those_this_build_writes() {
        let format = |url: &str| read(url).map(|config| config.format);
        assert_eq!(format("redis://h"), Ok(Format::NEWEST));
        assert_eq!(format("redis://h?format=2"), Ok(Format::OLDEST));
        assert_eq!(format("redis://h?format=3"), Ok(Format::NEWEST));
        let known = format!("{} or {}", Format::OLDEST, Format::NEWEST);
        let wrong = |value: &str| UrlError::Value { option: "format", value: value.to_owned(), expected: "2 or 3" };
        for value in ["1", "4", "x", ""] {
            assert_eq!(format(&format!("redis://h?format={value}")), Err(wrong(value)));
            assert!(wrong(value).to_string().ends_with(&known));
        }
    }

    fn read(url: &str) -> Result<RedisConfig, UrlError> {
        RedisConfig::from_url(url).map(|(config, _)| config)
    }

    #[test]
    fn urls_are_read() {
        for (url, shown) in [
            ("redis://host", "redis://host:6379/0"),
            ("redis://host/", "redis://host:6379/0"),
            ("redis://host:7000/3", "redis://host:7000/3"),
            ("redis://host:7000?db=4", "redis://host:7000/4"),
            ("redis://[::1]", "redis://[::1]:6379/0"),
            ("redis://[::1]:7000/1", "redis://[::1]:7000/1"),
            ("rediss://user:pass@host", "rediss://host:6379/0"),
            ("redis+unix:///run/redis.sock?db=2", "redis+unix:///run/redis.sock?db=2"),
            ("redis+unix://:pass@/run/a%20b.sock", "redis+unix:///run/a b.sock?db=0"),
        ] {
            assert_eq!(read(url).map(|config| config.to_string()), Ok(shown.to_owned()), "{url}");
        }
    }

    #[test]
    fn logins_are_read_and_not_printed() {
        for (url, user, password) in [
            ("redis://host", None, None),
            ("redis://ann@host", Some("ann"), None),
            ("redis://:s3cret@host", None, Some("s3cret")),
            ("redis://ann:s3cret@host", Some("ann"), Some("s3cret")),
            ("redis://ann:s3cret%40%2f%3a%23@host", Some("ann"), Some("s3cret@/:#")),
            ("redis://ann:s3cret@x@host", Some("ann"), Some("s3cret@x")),
        ] {
            let config = read(url).unwrap();
            assert_eq!((config.user.as_deref(), config.password.as_ref().map(|it| it.0.as_str())), (user, password));
            assert!(!format!("{config} {config:?} {:?}", config.endpoint()).contains("s3cret"), "{config:?}");
        }
    }

    #[test]
    fn options_are_taken_and_the_rest_is_given_back() {
        let url =
            "rediss://h?prefix=a%3ab:&lease=3s&nodelay=false&strict=true&ca=/c&cert=/d&key=/e&connect_timeout=1s&fair";
        let (config, rest) = RedisConfig::from_url(url).unwrap();
        let rest: Vec<_> = rest.iter().map(|(option, value)| (option.as_str(), value.as_str())).collect();
        assert_eq!(rest, [("lease", "3s"), ("fair", "")]);
        assert_eq!((config.prefix.as_str(), config.nodelay, config.strict), ("a:b:", false, true));
        assert_eq!(config.tls.ca, Some("/c".into()));
        assert_eq!((config.tls.cert, config.tls.key), (Some("/d".into()), Some("/e".into())));
        assert_eq!(config.connect_timeout, Duration::from_secs(1));
        assert_eq!(read("redis://h?connect_timeout=0.5").unwrap().connect_timeout, Duration::from_millis(500));
    }

    #[test]
    fn wrong_urls_are_refused_without_their_password() {
        for url in [
            "redis:s3cret",
            "http://host",
            "redis://",
            "redis:///0",
            "redis://:s3cret@",
            "redis://:s3cret@host:port",
            "redis://:s3cret@host:0",
            "redis://:s3#cret@host",
            "redis://host:70000",
            "redis://[::1",
            "redis://[::1]7000",
            "redis://host/one",
            "redis://host/-1",
            "redis://:%ff@host",
            "redis+unix://",
            "redis+unix:///",
            "redis+unix://host/path",
            "redis://h?nodelay=perhaps",
            "redis://h?connect_timeout=0s",
            "redis://h?connect_timeout=soon",
            "redis://h?connect_timeout=-1",
            "rediss://h?cert=/c",
            "rediss://h?key=/c",
            "redis://h?ca=/c",
        ] {
            let error = read(url).map(|config| config.to_string()).expect_err(url);
            assert!(!error.to_string().contains("s3") && !error.to_string().contains("cret"), "{error}");
        }
    }
}
