//! From a URL to a client: which store its scheme names, and the options in its query.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;

#[cfg(feature = "sqlite")]
use bandog_core::format::Format;
use bandog_core::text::HIDDEN;

use crate::config::ConfigError;
use crate::memory::MemoryStore;

use super::{Locks, LocksBuilder};

impl LocksBuilder {
    /// Builds a client of the store that a URL names; see [`Locks::connect`]. Options in the query win over those set before.
    /// Unlike there, the environment is not looked at.
    ///
    /// # Errors
    /// [`ConfigError`] names what is wrong with the URL, an option or the store.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no client behind.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let locks = bandog::Locks::builder().label("billing").connect("memory:shop?lease=10s").await?;
    /// # Ok::<(), bandog::ConfigError>(()) }).unwrap();
    /// ```
    pub async fn connect(mut self, url: &str) -> Result<Locks, ConfigError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let options;
        (self, options) = match address.split_once(':') {
            Some(("memory" | "sqlite", _)) if has_login(url) => return Err(no_login(url)),
            Some(("memory", "")) => (self.store(MemoryStore::new()), pairs(query)),
            Some(("memory", name)) => (self.store(MemoryStore::named(name)), pairs(query)),
            #[cfg(feature = "sqlite")]
            Some(("sqlite", path)) => {
                let (format, rest) = format_of(pairs(query))?;
                (self.store(file(path, format)?), rest)
            }
            #[cfg(feature = "redis")]
            Some(("redis" | "rediss" | "redis+unix", _)) => {
                let (store, rest) = server(url).await?;
                (self.store(store), rest)
            }
            _ => return Err(ConfigError::BadUrl { url: redacted(url), known: KNOWN }),
        };
        self.with(options)?.build()
    }
}

/// All of [`LocksBuilder::connect`] but the opening.
#[cfg(feature = "fuzzing")]
pub(crate) fn read(url: &str) -> Result<(), ConfigError> {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let options = match place.split_once(':') {
        Some(("memory", _)) => pairs(query),
        #[cfg(feature = "sqlite")]
        Some(("sqlite", path)) => path_of(path).and_then(|_| format_of(pairs(query)))?.1,
        #[cfg(feature = "redis")]
        Some(("redis" | "rediss" | "redis+unix", _)) => address(url)?.1,
        _ => return Err(ConfigError::BadUrl { url: redacted(url), known: KNOWN }),
    };
    LocksBuilder::default().with(options).map(drop)
}

pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let given = query.split('&').filter(|pair| !pair.is_empty());
    given.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(o, v)| (o.to_owned(), v.to_owned())).collect()
}

pub(super) const KNOWN: &[&str] = &[
    "memory:",
    "memory:NAME",
    #[cfg(feature = "sqlite")]
    "sqlite:",
    #[cfg(feature = "sqlite")]
    "sqlite:PATH",
    #[cfg(feature = "redis")]
    "redis://HOST",
    #[cfg(feature = "redis")]
    "rediss://HOST",
    #[cfg(feature = "redis")]
    "redis+unix:///PATH",
];

/// Where the file is that stands behind `sqlite:`.
#[cfg(feature = "sqlite")]
pub(super) fn path_of(path: &str) -> Result<PathBuf, ConfigError> {
    place(path, std::env::home_dir(), bandog_sqlite::SqliteStore::default_path)
}

#[cfg(feature = "sqlite")]
fn file(path: &str, format: Option<Format>) -> Result<bandog_sqlite::SqliteStore, ConfigError> {
    use bandog_sqlite::{Settings, SqliteStore};
    let path = path_of(path)?;
    SqliteStore::with(&path, Settings { format, ..Settings::default() }).map_err(|error| {
        let (store, kind, message) = (format!("sqlite:{}", path.display()), error.kind, error.message);
        ConfigError::Store { store, kind, message }
    })
}

/// The format that a file is to have, and the options that are not the store's own.
#[cfg(feature = "sqlite")]
fn format_of(options: Rest) -> Result<(Option<Format>, Rest), ConfigError> {
    let (given, rest): (Rest, Rest) = options.into_iter().partition(|(option, _)| option == "format");
    let Some((option, value)) = given.into_iter().next_back() else { return Ok((None, rest)) };
    match value.parse() {
        Ok(format) => Ok((Some(format), rest)),
        Err(_) => Err(ConfigError::BadValue { option, value, expected: "2 or 3" }),
    }
}

/// The path that stands behind `sqlite:`.
#[cfg(feature = "sqlite")]
fn place(path: &str, home: Option<PathBuf>, default: impl Fn() -> Option<PathBuf>) -> Result<PathBuf, ConfigError> {
    if path.is_empty() {
        return default().ok_or(ConfigError::NoHome);
    }
    match path.strip_prefix("~/") {
        Some(rest) => Ok(home.filter(|home| home.is_absolute()).ok_or(ConfigError::NoHome)?.join(rest)),
        None => Ok(PathBuf::from(path)),
    }
}

/// The options of a URL that are not the store's own.
#[cfg(any(feature = "redis", feature = "sqlite"))]
type Rest = Vec<(String, String)>;

/// Connects to a server; gives back the options that are not the store's own.
#[cfg(feature = "redis")]
async fn server(url: &str) -> Result<(bandog_redis::RedisStore, Rest), ConfigError> {
    let (config, rest) = address(url)?;
    let store = config.to_string();
    let connected = at_home(|| bandog_redis::RedisStore::connect(config)).await?;
    connected.map(|store| (store, rest)).map_err(|error| unopened(store, error))
}

/// Where a server is, and the options that are not the store's own.
#[cfg(feature = "redis")]
pub(super) fn address(url: &str) -> Result<(bandog_redis::RedisConfig, Rest), ConfigError> {
    use bandog_redis::{RedisConfig, UrlError};
    RedisConfig::from_url(url).map_err(|error| match error {
        UrlError::Value { option, value, expected } => {
            ConfigError::BadValue { option: option.to_owned(), value, expected }
        }
        error => ConfigError::BadAddress { url: redacted(url), reason: error.to_string() },
    })
}

#[cfg(feature = "redis")]
pub(super) fn unopened(store: String, error: bandog_core::store::StoreError) -> ConfigError {
    // Its own words begin with its name, which is told already.
    let message = error.message.strip_prefix(&store).unwrap_or(&error.message).trim_start_matches([':', ' ']);
    ConfigError::Store { kind: error.kind, message: message.to_owned(), store }
}

/// Does what needs a runtime: on the caller's, or on a thread of its own where the caller has none, or stands in its way. What is
/// connected there is connected again where it is used.
#[cfg(feature = "redis")]
pub(super) async fn at_home<F: Future<Output: Send + 'static>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<F::Output, ConfigError> {
    if !crate::blocking::is_blocking() && tokio::runtime::Handle::try_current().is_ok() {
        return Ok(work().await);
    }
    let failed = |error: std::io::Error| ConfigError::Thread(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (tell, told) = tokio::sync::oneshot::channel();
    let connect = move || {
        let done = runtime.block_on(work());
        // Its connection ends first: whoever is told finds it gone, not dying.
        drop(runtime);
        drop(tell.send(done));
    };
    std::thread::Builder::new().name("bandog-connect".into()).spawn(connect).map_err(failed)?;
    told.await.map_err(|_| ConfigError::Thread("it ended before it was connected".to_owned()))
}

/// What may be shown of a URL that cannot be read: nowhere in it is certain to be no password. A word that is nearly a scheme is shown.
pub(super) fn redacted(url: &str) -> String {
    let scheme = url.split(':').next().unwrap_or_default();
    let is_word = scheme.len() <= 10 && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'+');
    let is_near = ["mem", "sql", "red"].iter().any(|start| scheme.starts_with(start));
    if is_word && is_near { format!("{scheme}:{HIDDEN}") } else { HIDDEN.to_owned() }
}

/// The URL of a store as another program may be given it: without user and password. Nothing if it cannot be read, as then nobody knows
/// which part of it is the password.
///
/// ```
/// assert_eq!(bandog::without_login("redis://ann:s3cret@host/2?lease=5s").as_deref(), Some("redis://host/2?lease=5s"));
/// assert_eq!(bandog::without_login("sqlite:/srv/locks.db").as_deref(), Some("sqlite:/srv/locks.db"));
/// assert_eq!(bandog::without_login("redis//:s3cret@host"), None);
/// ```
pub fn without_login(url: &str) -> Option<String> {
    match url.split_once(':')? {
        ("memory" | "sqlite", _) => Some(url.to_owned()).filter(|url| !has_login(url)),
        #[cfg(feature = "redis")]
        ("redis" | "rediss" | "redis+unix", _) => {
            address(url).ok()?;
            let (scheme, address) = url.split_once("://")?;
            let end = address.find(['/', '?']).unwrap_or(address.len());
            let (authority, rest) = address.split_at(end);
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            Some(format!("{scheme}://{host}{rest}"))
        }
        _ => None,
    }
}

/// Whether the address of a server stands where a path or a name belongs. A ? in it may be one of its password's.
pub(super) fn has_login(url: &str) -> bool {
    let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
    let login = || Some(rest.find(':')? < rest.rfind('@')?);
    rest.starts_with("//") || rest.contains("://") || login().unwrap_or(false)
}

/// What stands behind `sqlite:` and `memory:` is printed, so it must hold no password.
pub(super) fn no_login(url: &str) -> ConfigError {
    let reason = "one colon, then a path or a name; no //, no user and no password".to_owned();
    ConfigError::BadAddress { url: redacted(url), reason }
}

#[cfg(all(test, feature = "sqlite"))]
mod file_tests {
    use super::*;

    #[test]
    fn a_path_is_what_people_mean_by_it() {
        let at = |path| place(path, Some("/home/ann".into()), || Some("/state/locks.db".into()));
        assert_eq!(at("").unwrap(), PathBuf::from("/state/locks.db"));
        assert_eq!(at("~/locks.db").unwrap(), PathBuf::from("/home/ann/locks.db"));
        assert_eq!(at("locks.db").unwrap(), PathBuf::from("locks.db"));
        assert_eq!(at("/var/locks.db").unwrap(), PathBuf::from("/var/locks.db"));
        assert_eq!(place("~/x", None, || None), Err(ConfigError::NoHome));
        assert_eq!(place("", None, || None), Err(ConfigError::NoHome));
    }

    #[test]
    fn format_of_a_file_is_one_of_those_this_build_writes() {
        let read = |query: &str| format_of(pairs(query));
        let lease = || vec![("lease".to_owned(), "3s".to_owned())];
        assert_eq!(read("lease=3s"), Ok((None, lease())));
        assert_eq!(read("format=2&lease=3s"), Ok((Some(Format::OLDEST), lease())));
        assert_eq!(read("lease=3s&format=3"), Ok((Some(Format::NEWEST), lease())));
        for value in ["1", "4", ""] {
            let wrong = ConfigError::BadValue { option: "format".into(), value: value.into(), expected: "2 or 3" };
            assert_eq!(read(&format!("format={value}")), Err(wrong));
        }
    }
}

#[cfg(all(test, feature = "redis"))]
mod server_tests {
    use super::*;

    #[test]
    fn a_url_is_passed_on_without_its_login() {
        for (url, passed) in [
            ("redis://host", Some("redis://host")),
            ("redis://ann@host", Some("redis://host")),
            ("rediss://ann:s3@cret@host:7/2?prefix=a", Some("rediss://host:7/2?prefix=a")),
            ("redis+unix://:s3cret@/run/redis.sock?db=1", Some("redis+unix:///run/redis.sock?db=1")),
            ("redis://:s3/cret@host", None),
            ("redis://:s3cret@", None),
            ("sqlite:", Some("sqlite:")),
            ("sqlite:/srv/a@b.db", Some("sqlite:/srv/a@b.db")),
            ("sqlite://:s3cret@h", None),
            (":s3cret@host", None),
            ("s3cret", None),
        ] {
            assert_eq!(without_login(url).as_deref(), passed, "{url}");
        }
    }

    use crate::error::ErrorKind;

    async fn refused(url: &str) -> ConfigError {
        Locks::builder().connect(url).await.expect_err(url)
    }

    #[tokio::test]
    async fn wrong_urls_are_told_without_their_password() {
        for url in ["redis://:s3cret@host:port", "rediss://:s3cret@", "redis+unix://:s3cret@", "rediz://:s3cret@host"] {
            let error = refused(url).await;
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
        assert!(matches!(refused("redis://host?nodelay=perhaps").await, ConfigError::BadValue { .. }));
    }

    #[test]
    fn a_server_can_be_asked_for_without_a_runtime() {
        let error = crate::blocking::Locks::connect("redis+unix:///nowhere/socket").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_unavailable() {
        let error = refused("redis+unix://ann:s3cret@/nowhere/socket?lease=5s").await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        assert!(error.to_string().contains("redis+unix:///nowhere/socket"), "{error}");
    }
}
