//! From a URL to a client: which store its scheme names, and the options in its query.

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
    use bandog_sqlite::SqliteStore;
    let default = if path.is_empty() { Some(SqliteStore::default_path().ok_or(ConfigError::NoHome)?) } else { None };
    let path = default.as_deref().unwrap_or_else(|| std::path::Path::new(path));
    SqliteStore::open(path).map_err(|error| {
        let (store, kind, message) = (format!("sqlite:{}", path.display()), error.kind, error.message);
        ConfigError::Store { store, kind, message }
    })
}

// An address may carry a password.
fn redacted(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}
