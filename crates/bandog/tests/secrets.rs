//! No message shows a password, however wrong the URL is that it stands in. `BANDOG_SECRETS` is how many URLs are tried.
#![cfg(feature = "redis")]

use bandog::Locks;

/// The two halves of every password: neither may be seen, whatever stands between them.
const HALVES: [&str; 2] = ["Kx7Qz", "Vw9Jp"];
/// What people forget to escape.
const BETWEEN: &[&str] = &[
    "", "/", "@", "#", "?", ":", "%", "%zz", "%40", "&", "=", " ", "\\", "//", "://", "[", "]", "'", "\"", "\x1b[2J",
    "é",
];
const BEFORE: &[&str] = &[
    "redis://:",
    "redis://ann:",
    "rediss://ann:",
    "redis+unix://:",
    "rediz://:",
    "http://ann:",
    "sqlite://:",
    "sqlite://ann:",
    "sqlite:redis://:",
    "memory://ann:",
    "://:",
    "",
    ":",
];
/// Nobody listens there, and no name has to be looked up.
const HOST: &str = "@127.0.0.1:1";
const AFTER: &[&str] = &[
    "",
    "/0",
    "/x",
    "/x/y",
    "?lease=10s",
    "?leese=10s",
    "?lease=soon",
    "?db=x",
    "?prefix=a&fair=perhaps",
    "?x@y",
    "#x",
];

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

/// A URL with a password, and at most one sign too many, too few or in the wrong place before it.
fn url(dice: &mut Dice) -> String {
    let (mut before, between, after) = (dice.pick(BEFORE).to_owned(), dice.pick(BETWEEN), dice.pick(AFTER));
    let at = dice.roll(before.len() + 1);
    match dice.roll(4) {
        0 if at < before.len() => drop(before.remove(at)),
        1 => before.insert(at, [':', '/', '@', ' ', 'r', '?', '#'][dice.roll(7)]),
        2 if at + 1 < before.len() => {
            let sign = before.remove(at);
            before.insert(at + 1, sign);
        }
        _ => {}
    }
    // What follows a password's own @ is a host to whoever reads it, unless another @ follows.
    let host = match dice.roll(8) {
        0 if !between.contains(['@', '%']) && !before.contains('@') => "",
        1 if !between.contains(['@', '%']) && !before.contains('@') => &HOST[1..],
        _ => HOST,
    };
    // Without a colon before it, it is no password; and before a store that is no server it is one only with both.
    let is_path = ["sqlite", "memory", "+unix"].iter().any(|scheme| before.contains(&scheme[1..5]));
    let host = if before.ends_with(':') && !is_path { host } else { HOST };
    format!("{before}{}{between}{}{host}{after}", HALVES[0], HALVES[1])
}

/// Whether what is left of it is the path of a file, which would be made.
fn is_a_path(url: &str) -> bool {
    let Some(path) = url.strip_prefix("sqlite:") else { return false };
    let is_login = path.find(':').is_some_and(|colon| path.rfind('@').is_some_and(|at| colon < at));
    !path.starts_with("//") && !path.contains("://") && !is_login
}

fn shows_a_secret(text: &str) -> bool {
    HALVES.iter().any(|half| text.contains(half))
}

#[test]
fn no_wrong_url_shows_its_password() {
    let tries = std::env::var("BANDOG_SECRETS").ok().and_then(|tries| tries.parse().ok()).unwrap_or(4_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut dice, mut seen, mut told) = (Dice(27), 0, Vec::new());
    for _ in 0..tries {
        let url = url(&mut dice);
        if is_a_path(&url) {
            continue;
        }
        let opened = if dice.roll(8) == 0 {
            runtime.block_on(Locks::builder().checkup(&url)).map(|found| format!("{found:?}"))
        } else {
            runtime.block_on(Locks::builder().connect(&url)).map(|locks| format!("{locks:?} {}", locks.health().store))
        };
        let text = opened.unwrap_or_else(|error| format!("{error} {error:?}"));
        seen += 1;
        if shows_a_secret(&text) {
            told.push((url, text));
        }
    }
    println!("{seen} URLs, {} messages with the password", told.len());
    assert!(told.is_empty(), "{} of {seen}: {:#?}", told.len(), &told[..told.len().min(5)]);
}
