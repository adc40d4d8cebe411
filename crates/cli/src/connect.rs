//! From arguments and settings to a client of the store.

use std::path::PathBuf;

use bandog::{ConfigError, Locks};

use crate::args::StoreArgs;
use crate::entry::{TICKET, ticket_label};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::query;
use crate::screen::harmless;
use crate::settings::Settings;
use crate::shell;

/// Where the locks are unless somebody says otherwise.
const DEFAULT: &str = "sqlite:";

/// What others see of this process.
#[derive(Debug)]
pub(crate) enum Label<'a> {
    /// Given on the command line: it wins.
    Given(&'a str),
    /// If nobody says otherwise.
    Usual(&'a str),
    /// Of a ticket: told as that, whoever gives it.
    Ticket(Option<&'a str>),
}

impl<'a> Label<'a> {
    pub(crate) fn new(given: Option<&'a str>, usual: &'a str) -> Self {
        given.map_or(Self::Usual(usual), Self::Given)
    }
}

/// Who is at the keyboard, for the label of one who breaks locks: the history of a lock names people.
pub(crate) fn user(usual: &str) -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
    let by_number = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.name);
    ["USER", "LOGNAME"].into_iter().find_map(named).or_else(by_number).unwrap_or_else(|| usual.to_owned())
}

/// Where the locks are.
pub(crate) fn address(args: &StoreArgs) -> Result<String, Failure> {
    let url = args.store.clone().unwrap_or_else(|| DEFAULT.to_owned());
    refuse_none(&url)?;
    if url.starts_with("memory:") {
        let why = "would have locks of its own, which keep nobody out; use sqlite: or sqlite:PATH";
        return Err(Failure::usage(format!("memory: is a store inside one process: every command {why}")));
    }
    Ok(url)
}

/// An empty address is a variable that was never set. The usual store would be a lock of this machine's own, which keeps no other out.
fn refuse_none(url: &str) -> Result<(), Failure> {
    if !url.trim().is_empty() {
        return Ok(());
    }
    let is_typed = shell::gives_store(std::env::args_os());
    let is_set = std::env::var_os("BANDOG_STORE").is_some();
    let place = if is_typed {
        "--store"
    } else if is_set {
        "BANDOG_STORE"
    } else {
        "store in the configuration file"
    };
    Err(Failure::usage(format!("{place} is empty, and names no store")).because("empty_store"))
}

/// Opens a store that is there: looking makes none. A path that nobody has used yet is most likely misspelt.
pub(crate) async fn existing(args: &StoreArgs, settings: &Settings, label: Label<'_>) -> Result<Locks, Failure> {
    let url = address(args)?;
    match file(&url).filter(|path| !path.exists()) {
        Some(path) => {
            let text = format!("sqlite:{} is not there: nobody has used it yet", harmless(&path.to_string_lossy()));
            Err(Failure::new("no_such_store", Exit::NoLock, text))
        }
        None => connect(args, settings, label).await,
    }
}

/// The file behind an address, if it is one.
fn file(url: &str) -> Option<PathBuf> {
    // One with a login is no path, and is told without it.
    let url = bandog::without_login(url)?;
    let path = url.strip_prefix("sqlite:")?.split('?').next()?;
    match path.strip_prefix("~/") {
        _ if path.is_empty() => bandog_sqlite::SqliteStore::default_path(),
        Some(rest) => Some(std::env::home_dir()?.join(rest)),
        None => Some(path.into()),
    }
}

/// Opens the store.
pub(crate) async fn connect(args: &StoreArgs, settings: &Settings, label: Label<'_>) -> Result<Locks, Failure> {
    let mut url = address(args)?;
    let mut builder = Locks::builder();
    if let Label::Usual(text) = label {
        builder = builder.label(text);
    }
    builder = settings.apply(builder)?;
    // The query is read last of all.
    let mut without_query = || query::take(&url, "label").map(|(rest, label)| (url = rest, label).1);
    match label {
        Label::Usual(_) => {}
        Label::Given(text) => {
            without_query();
            builder = builder.label(text);
        }
        Label::Ticket(given) => {
            let of_query = without_query();
            let text = given.or(of_query.as_deref()).or_else(|| settings.label());
            builder = builder.label(text.map_or_else(|| TICKET.to_owned(), ticket_label));
        }
    }
    builder.connect(&url).await.map_err(|error| unopened(&error))
}

/// Why a store was not opened.
pub(crate) fn unopened(error: &ConfigError) -> Failure {
    match error {
        ConfigError::BadUrl { url, known } => {
            // Only those that the command takes.
            let known: Vec<&str> = known.iter().copied().filter(|known| !known.starts_with("memory:")).collect();
            let text = format!("{url:?} names no store; there are {}", known.join(", "));
            Failure::new(error.kind().as_str(), Exit::of(error.kind()), text).because("address")
        }
        ConfigError::BadAddress { .. } => Failure::of(error.kind(), error).because("address"),
        _ => Failure::of(error.kind(), error),
    }
}
