//! Secrets planted where people put them by mistake: whatever is said of it, no message repeats them.
//!
//! A secret is one word that nothing else can produce. It stands where a password or a ticket would, and what surrounds it comes from
//! the fuzzer.

/// A message that repeats a secret: what was read, and what was said.
#[derive(Debug)]
pub struct Planted {
    /// What was read.
    pub given: String,
    /// What was said of it.
    pub said: String,
}

const SECRET: &str = "hunter2secret";

/// Long enough to be recognised in a message that shows a part.
const PART: usize = 8;

fn repeats(given: String, said: Option<String>) -> Result<(), Planted> {
    let Some(said) = said else { return Ok(()) };
    let is_told = SECRET.as_bytes().windows(PART).any(|part| said.as_bytes().windows(PART).any(|seen| seen == part));
    if is_told { Err(Planted { given, said }) } else { Ok(()) }
}

/// The first byte chooses how the URL is broken; the rest stands around the secret.
fn url_of(data: &[u8]) -> Option<String> {
    let (choice, rest) = data.split_first()?;
    let text = std::str::from_utf8(rest).ok()?;
    // What is not part of a login cannot be told from a host.
    let (before, after) = text.split_once('\0').unwrap_or((text, "host"));
    let schemes =
        ["redis://", "rediss://", "redis+unix://", "redis//:", "redis:", "redis:/", "sqlite://", "rediz://", "", "://"];
    let scheme = schemes[usize::from(*choice) % schemes.len()];
    Some(format!("{scheme}{before}:{SECRET}@{after}"))
}

/// A URL with a password, right or wrong.
///
/// # Errors
/// The message that repeats the password.
pub fn url_secret(data: &[u8]) -> Result<(), Planted> {
    let Some(url) = url_of(data) else { return Ok(()) };
    let address = url.split_once("://").map_or(url.as_str(), |(_, address)| address);
    let other = format!("postgres://{address}");
    let said = match bandog_postgres::PostgresConfig::from_url(&other) {
        Ok((config, _)) => format!("{config} {config:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    repeats(other, Some(said))?;
    repeats(url.clone(), bandog_cli::fuzzing::url(&url))
}

/// A file whose `store` has a password, with whatever mistakes around it.
///
/// # Errors
/// The message that repeats the password.
pub fn config_secret(data: &[u8]) -> Result<(), Planted> {
    let Ok(text) = std::str::from_utf8(data) else { return Ok(()) };
    let (before, after) = text.split_once('\0').unwrap_or((text, "\"\n"));
    let file = format!("{before}store = \"redis://:{SECRET}@host{after}");
    repeats(file.clone(), bandog_cli::fuzzing::config(&file))
}

/// A ticket that is damaged.
///
/// # Errors
/// The message that repeats a part of it.
pub fn ticket_secret(data: &[u8]) -> Result<(), Planted> {
    let Ok(text) = std::str::from_utf8(data) else { return Ok(()) };
    let given = format!("bandog1-{SECRET}{text}");
    let said = given.parse::<bandog::Ticket>().err().map(|error| format!("{error} {error:?}"));
    repeats(given, said)
}

/// All three, chosen by the first byte.
pub(crate) fn secrets(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let told = match choice % 3 {
        0 => url_secret(rest),
        1 => config_secret(rest),
        _ => ticket_secret(rest),
    };
    if let Err(Planted { given, said }) = told {
        panic!("a secret is told of {given:?}: {said}");
    }
}
