//! From a URL to a client: which store its scheme names, and the options in its query.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;

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
        self = match address.split_once(':') {
            Some(("memory", "")) => self.store(MemoryStore::new()),
            Some(("memory", name)) => self.store(MemoryStore::named(name)),
            #[cfg(feature = "sqlite")]
            Some(("sqlite", path)) => self.store(file(path)?),
            _ => return Err(ConfigError::BadUrl { url: redacted(url), known: KNOWN }),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (option, value) = pair.split_once('=').unwrap_or((pair, ""));
            self = self.set(option, value)?;
        }
        self.build()
    }
}

const KNOWN: &[&str] = &[
    "memory:",
    "memory:NAME",
    #[cfg(feature = "sqlite")]
    "sqlite:",
    #[cfg(feature = "sqlite")]
    "sqlite:PATH",
];

#[cfg(feature = "sqlite")]
fn file(path: &str) -> Result<bandog_sqlite::SqliteStore, ConfigError> {
    let path = place(path, std::env::home_dir(), bandog_sqlite::SqliteStore::default_path)?;
    bandog_sqlite::SqliteStore::open(&path).map_err(|error| {
        let (store, kind, message) = (format!("sqlite:{}", path.display()), error.kind, error.message);
        ConfigError::Store { store, kind, message }
    })
}

/// The path that stands behind `sqlite:`.
#[cfg(feature = "sqlite")]
fn place(path: &str, home: Option<PathBuf>, default: impl Fn() -> Option<PathBuf>) -> Result<PathBuf, ConfigError> {
    if path.is_empty() {
        return default().ok_or(ConfigError::NoHome);
    }
    if path.starts_with("//") {
        let (option, value) = ("sqlite".to_owned(), path.to_owned());
        return Err(ConfigError::BadValue { option, value, expected: "a path: one colon, then the path, and no //" });
    }
    match path.strip_prefix("~/") {
        Some(rest) => Ok(home.filter(|home| home.is_absolute()).ok_or(ConfigError::NoHome)?.join(rest)),
        None => Ok(PathBuf::from(path)),
    }
}

// An address may carry a password.
fn redacted(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_people_mean_by_it() {
        let at = |path| place(path, Some("/home/ann".into()), || Some("/state/locks.db".into()));
        assert_eq!(at("").unwrap(), PathBuf::from("/state/locks.db"));
        assert_eq!(at("~/locks.db").unwrap(), PathBuf::from("/home/ann/locks.db"));
        assert_eq!(at("locks.db").unwrap(), PathBuf::from("locks.db"));
        assert_eq!(at("/var/locks.db").unwrap(), PathBuf::from("/var/locks.db"));
        let error = at("//locks.db").unwrap_err();
        assert_eq!(error.to_string(), r#"sqlite="//locks.db" is not a path: one colon, then the path, and no //"#);
        assert_eq!(place("~/x", None, || None), Err(ConfigError::NoHome));
        assert_eq!(place("", None, || None), Err(ConfigError::NoHome));
    }
}
