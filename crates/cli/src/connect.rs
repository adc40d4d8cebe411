//! From arguments and settings to a client of the store.

use std::path::PathBuf;
use std::time::Duration;

use bandog::{Clock, ConfigError, ErrorKind, Locks};

use crate::args::StoreArgs;
use crate::entry::{TICKET, ticket_label};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::near;
use crate::note::Note;
use crate::query;
use crate::say::Say;
use crate::screen::harmless;
use crate::settings::Settings;
use crate::shell;
use crate::signals::Interrupts;

/// Where the locks are unless somebody says otherwise.
const DEFAULT: &str = "sqlite:";

/// The pauses between two tries at a store that is away.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What others see of this process.
#[derive(Debug, Clone, Copy)]
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
    builder.connect(&url).await.map_err(|error| unopened(&error, &url))
}

/// Opens the store; one that is away is waited for, for as long as was asked. `told` has who waits and how to say it.
pub(crate) async fn connect_within(
    patience: Option<Duration>,
    (args, settings, label): (&StoreArgs, &Settings, Label<'_>),
    (name, say): (&str, &Say),
    interrupts: &mut Interrupts,
) -> Result<Locks, Failure> {
    let began = Clock::system().now();
    let (mut pause, mut is_told) = (FIRST_PAUSE, false);
    loop {
        let opened = tokio::select! {
            biased;
            signal = interrupts.next() => return Err(interrupted(name, say, signal)),
            opened = connect(args, settings, label) => opened,
        };
        let waited = Clock::system().now().since(began);
        let left = patience.unwrap_or_default().saturating_sub(waited);
        match opened {
            Err(failure) if failure.is_unavailable() && !left.is_zero() => {
                if !is_told {
                    say.note(name, &Note::NoStore { error: failure.text().to_owned(), left });
                    is_told = true;
                }
            }
            opened => return opened,
        }
        tokio::select! {
            signal = interrupts.next() => return Err(interrupted(name, say, signal)),
            () = tokio::time::sleep(pause.min(left)) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

fn interrupted(name: &str, say: &Say, signal: i32) -> Failure {
    say.note(name, &Note::Interrupted { signal });
    Failure::said(Exit::Interrupted(signal))
}

/// Why a store was not opened.
pub(crate) fn unopened(error: &ConfigError, given: &str) -> Failure {
    match error {
        ConfigError::Store { store, .. } if error.kind() == ErrorKind::Refused && store.starts_with("sqlite:") => {
            Failure::of(error.kind(), error).because("file")
        }
        ConfigError::BadUrl { url, known } => {
            // Only those that the command takes.
            let known: Vec<&str> = known.iter().copied().filter(|known| !known.starts_with("memory:")).collect();
            let text = format!("{url:?} names no store; there are {}", known.join(", "));
            Failure::new(error.kind().as_str(), Exit::of(error.kind()), text)
                .because("address")
                .corrected(corrected(given))
        }
        ConfigError::BadValue { option, .. } if option == "sqlite" => {
            Failure::of(error.kind(), error).because("address").corrected(corrected(given))
        }
        ConfigError::BadAddress { .. } => Failure::of(error.kind(), error).corrected(corrected(given)),
        ConfigError::UnknownOption { option, known } => {
            let meant =
                near::nearest(option, known.iter().copied()).map(|meant| format!("{meant}= instead of {option}="));
            Failure::of(error.kind(), error).corrected(meant)
        }
        _ => Failure::of(error.kind(), error),
    }
}

/// The address that was most likely meant. Its parts are shown only where none of them can be a piece of a password.
fn corrected(url: &str) -> Option<String> {
    let address = url.split('?').next().filter(|_| !url.contains('@'))?;
    match address.split_once(':') {
        // As other programs write it.
        Some(("sqlite", path)) => {
            path.strip_prefix("//").filter(|path| is_path(path)).map(|path| format!("sqlite:{path}"))
        }
        Some((scheme, rest)) if rest.starts_with("//") => {
            let meant = near::nearest(scheme, ["redis", "rediss", "redis+unix"].into_iter());
            let meant = meant.filter(|meant| *meant != scheme)?;
            let place = rest.strip_prefix("//")?;
            let fits = if meant == "redis+unix" { is_path(place) } else { is_place(place) };
            fits.then(|| format!("{meant}://{place}"))
        }
        Some((_, port)) if port.starts_with(|sign: char| sign.is_ascii_digit()) && is_place(address) => {
            Some(format!("redis://{address}"))
        }
        None if is_path(address) => Some(format!("sqlite:{address}")),
        None if address == "localhost" || address.parse::<std::net::IpAddr>().is_ok() => {
            Some(format!("redis://{address}"))
        }
        _ => None,
    }
}

/// `HOST`, `HOST:PORT` or either with the number of a database.
fn is_place(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<u16>().is_ok();
    let (place, database) = text.split_once('/').map_or((text, None), |(place, rest)| (place, Some(rest)));
    let (host, port) = place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)));
    let is_host = !host.is_empty() && host.chars().all(|sign| sign.is_ascii_alphanumeric() || ".-_".contains(sign));
    is_host && port.is_none_or(is_number) && database.is_none_or(is_number)
}

/// The path of a file, by its looks.
fn is_path(text: &str) -> bool {
    let is_rooted = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start)) && !text.starts_with("//");
    (is_rooted || text.ends_with(".db") || text.ends_with(".sqlite")) && !text.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_corrected_where_it_is_clear_what_was_meant() {
        for (given, meant) in [
            ("sqlite:///tmp/x.db", "sqlite:/tmp/x.db"),
            ("sqlite://x.db?lease=3s", "sqlite:x.db"),
            ("/tmp/x.db", "sqlite:/tmp/x.db"),
            ("~/x", "sqlite:~/x"),
            ("x.db", "sqlite:x.db"),
            ("127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("db1:6379/2", "redis://db1:6379/2"),
            ("localhost", "redis://localhost"),
            ("reddis://h", "redis://h"),
            ("redis+unx:///run/x", "redis+unix:///run/x"),
        ] {
            assert_eq!(corrected(given).as_deref(), Some(meant), "{given}");
        }
        for given in ["…", "http://h", "carrier-pigeon:coop", "redis", "postgres://h", "", "redis:"] {
            assert_eq!(corrected(given), None, "{given}");
        }
    }

    #[test]
    fn no_piece_of_a_password_is_in_a_corrected_address() {
        for given in [
            "reddis://:s3cret",
            "reddis://:s3cret@h",
            "reddis://ann:s3cret@h",
            "reddis://ann:12/s3cret",
            "redis//:s3cret@h",
            "sqlite://:s3cret@h",
            "sqlite://ann:s3cret/x.db",
            "/:s3cret@h",
            "//s3cret",
            "ann:s3cret",
            "h:6379/s3cret",
            "/x?s3cret",
        ] {
            let told = corrected(given).unwrap_or_default();
            assert!(!told.contains("s3cret"), "{given}: {told}");
        }
    }
}
