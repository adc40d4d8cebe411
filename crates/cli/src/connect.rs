//! From arguments and settings to a client of the store.

use bandog::Locks;

use crate::args::StoreArgs;
use crate::say::Failure;
use crate::settings::Settings;
use crate::wait::exit;

/// Where the locks are unless somebody says otherwise.
const DEFAULT: &str = "sqlite:";

/// Opens the store.
pub(crate) async fn connect(args: &StoreArgs, settings: &Settings, label: &str) -> Result<Locks, Failure> {
    let failure = |error: bandog::ConfigError| Failure::new(exit(error.kind()), error.to_string());
    let builder = settings.apply(Locks::builder().label(label)).map_err(failure)?;
    builder.connect(args.store.as_deref().unwrap_or(DEFAULT)).await.map_err(failure)
}
