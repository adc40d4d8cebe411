//! What the fuzzers call and nobody else may: what the command says of a file and of a URL.

use std::path::Path;

use crate::connect::unopened;
use crate::settings::Settings;

/// What is said of a configuration file with this text; nothing if it is right.
pub fn config(text: &str) -> Option<String> {
    match Settings::of_file(Path::new("config.toml"), text) {
        Err(wrong) => Some(wrong),
        Ok(settings) => settings.apply(bandog::Locks::builder()).err().map(|failure| format!("{failure:?}")),
    }
}

/// What is said of the URL of a store; nothing if it is right.
pub fn url(url: &str) -> Option<String> {
    let error = bandog::fuzzing::url(url).err()?;
    Some(format!("{:?} {error} {error:?}", unopened(&error, url)))
}
