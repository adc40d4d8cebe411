//! Examining a store by its URL: which store its scheme names, and the times that its clients would go by.

use bandog_core::checkup::{Check, Checkup};

use crate::config::ConfigError;

use super::{Locks, LocksBuilder, url};

const REACH: Check = Check::new("reach", "locks keep out those who see them");

/// Examines the store that a URL names: is it fit for locks, what is not, and which line to change. `bandog doctor` prints it.
///
/// It takes a few seconds at most and leaves nothing behind. A store that [`Locks::connect`] refuses is examined too, as far as
/// it lets us; what could not be seen is [`Fitness::Unknown`](crate::Fitness::Unknown). The checks are in [`docs/doctor.md`](https://github.com/bandog-lock/bandog/blob/main/docs/doctor.md). Options count as for
/// [`Locks::connect`]: what is measured is compared with them.
///
/// # Errors
/// [`ConfigError`] names what is wrong with the URL or an option. A store that cannot be reached at all is one of kind
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable); one that turns us away was reached, and that is a remark.
///
/// # Cancel safety
/// Dropped in the middle, it may leave the key of a probe in a server, which goes by itself within seconds.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use bandog::{Fitness, checkup};
///
/// let found = checkup("memory:").await?;
/// for remark in found.remarks.iter().filter(|remark| remark.fitness > Fitness::Fine) {
///     eprintln!("{} is {}: {}", remark.about, remark.fitness, remark.saw);
/// }
/// if found.worst() == Fitness::Wrong {
///     panic!("{} is not fit for locks", found.store);
/// }
/// # Ok::<(), bandog::ConfigError>(()) }).unwrap();
/// ```
pub async fn checkup(url: &str) -> Result<Checkup, ConfigError> {
    Locks::builder().set_from_env()?.checkup(url).await
}

impl LocksBuilder {
    /// Examines the store that a URL names for clients of these options; see [`checkup`]. Unlike there, the environment is
    /// not looked at. A store that was set before is not examined.
    ///
    /// # Errors
    /// As [`checkup`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let hurried = bandog::Locks::builder().response_timeout(std::time::Duration::from_millis(200));
    /// let found = hurried.checkup("memory:").await?;
    /// assert_eq!(found.worst(), bandog::Fitness::Fine);
    /// # Ok::<(), bandog::ConfigError>(()) }).unwrap();
    /// ```
    pub async fn checkup(self, url: &str) -> Result<Checkup, ConfigError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        match address.split_once(':') {
            Some(("memory" | "sqlite", _)) if url::has_login(url) => Err(url::no_login(url)),
            Some(("memory", name)) => {
                self.with(url::pairs(query))?.pace()?;
                Ok(memory(name))
            }
            #[cfg(feature = "sqlite")]
            Some(("sqlite", path)) => {
                let pace = self.with(url::pairs(query))?.pace()?;
                Ok(bandog_sqlite::checkup(url::path_of(path)?, &pace))
            }
            #[cfg(feature = "redis")]
            Some(("redis" | "rediss" | "redis+unix", _)) => {
                let (config, rest) = url::address(url)?;
                let (pace, store) = (self.with(rest)?.pace()?, config.to_string());
                let examined = url::at_home(move || async move { bandog_redis::checkup(&config, &pace).await }).await?;
                examined.map_err(|error| url::unopened(store, error))
            }
            _ => Err(ConfigError::BadUrl { url: url::redacted(url), known: url::KNOWN }),
        }
    }

    pub(super) fn with(self, options: Vec<(String, String)>) -> Result<Self, ConfigError> {
        options.into_iter().try_fold(self, |builder, (option, value)| builder.set(&option, &value))
    }
}

fn memory(name: &str) -> Checkup {
    let mut found = Checkup::of(format!("memory:{name}"));
    let saw = "locks of this process alone, which end with it; no other process sees them";
    found.remarks.push(REACH.fine(saw));
    found
}
