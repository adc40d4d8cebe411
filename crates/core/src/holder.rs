//! Who holds: the secret holder id that releases, the public id that people see, the inbox that is pushed to.
//!
//! The driver makes one [`Client`] per `Locks`; the lock machine takes a fresh [`HolderId`] from it for every claim.

use std::fmt::{self, Write as _};
use std::hash::Hasher;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::SipHasher24;

use crate::text::Harmless;

/// The 128 random bits that make a client's holder ids unguessable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClientId(u128);

impl ClientId {
    /// Wraps 128 bits from a cryptographic random source.
    pub fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits, for stores that write them down.
    pub fn to_bits(self) -> u128 {
        self.0
    }

    /// The address of this client's inbox: derived one way, so it may be shown and published.
    pub fn inbox(self) -> InboxId {
        InboxId(self.digest(u64::MAX))
    }

    // SipHash keyed by the secret is a pseudo-random function: its output tells nothing about the key.
    fn digest(self, message: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0.to_le_bytes());
        hasher.write_u64(message);
        hasher.finish()
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientId(secret)")
    }
}

/// The identity of one claim, written in the store: client secret and a sequence number never used twice.
///
/// Whoever knows it can renew and release, so `Debug` prints only the [public id](Self::public).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HolderId {
    /// The client's secret half.
    pub client: ClientId,
    /// The client's running number; pushes name it.
    pub seq: u64,
}

impl HolderId {
    /// The short id that people see; it cannot release anything.
    pub fn public(self) -> PublicId {
        PublicId(self.client.digest(self.seq) & SHOWN)
    }
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderId({}#{})", self.public(), self.seq)
    }
}

/// The id of a holder or waiter that logs, errors and listings show, and that people type to name one.
///
/// ```
/// use bandog_core::holder::PublicId;
/// let id: PublicId = "k3j0a9x7qt".parse()?;
/// assert_eq!(id.to_string(), "k3j0a9x7qt");
/// # Ok::<_, bandog_core::holder::PublicIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PublicId(u64);

/// Crockford's base 32: no letters that are mistaken for digits when read aloud at 3 a.m.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS: u32 = 10;
/// An id is no more than what is shown of it: whoever reads it can name it.
const SHOWN: u64 = u64::MAX << (64 - 5 * DIGITS);

impl PublicId {
    /// Rebuilds an id from the bits a store wrote down.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, for stores that write them down.
    pub fn to_bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |place: u32| ALPHABET[((self.0 >> (64 - 5 * (place + 1))) & 31) as usize];
        (0..DIGITS).try_for_each(|place| f.write_char(char::from(digit(place))))
    }
}

impl fmt::Debug for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Capital letters and the letters that look like a digit are understood too.
impl FromStr for PublicId {
    type Err = PublicIdError;

    fn from_str(text: &str) -> Result<Self, PublicIdError> {
        let wrong = || PublicIdError { text: text.to_owned() };
        let digit = |c: char| {
            let c = match c.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                c => c,
            };
            ALPHABET.iter().position(|known| char::from(*known) == c)
        };
        let mut bits = 0;
        for c in text.chars() {
            bits = bits << 5 | digit(c).ok_or_else(wrong)? as u64;
        }
        if text.len() != DIGITS as usize {
            return Err(wrong());
        }
        Ok(Self(bits << (64 - 5 * DIGITS)))
    }
}

/// A text that is no public id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no public id: that is ten digits and letters, such as k3j0a9x7qt")]
pub struct PublicIdError {
    /// As given.
    pub text: String,
}

/// Where a store pushes grants and notices for one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InboxId(u64);

impl InboxId {
    /// Rebuilds an id from the bits a store wrote down.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, for stores that write them down.
    pub fn to_bits(self) -> u64 {
        self.0
    }
}

/// What a claim says about the process behind it, for the eyes of people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Who {
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// What the user calls this process or job.
    pub label: String,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Harmless(&self.host), self.pid)?;
        if !self.label.is_empty() {
            write!(f, " ({})", Harmless(&self.label))?;
        }
        Ok(())
    }
}

/// One client's identity and its supply of fresh holder ids. Cheap to clone; clones share the sequence.
#[derive(Debug, Clone)]
pub struct Client(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    id: ClientId,
    inbox: InboxId,
    who: Arc<Who>,
    next: AtomicU64,
}

impl Client {
    /// A client whose sequence starts at 1.
    pub fn new(id: ClientId, who: Who) -> Self {
        Self(Arc::new(Identity { id, inbox: id.inbox(), who: Arc::new(who), next: AtomicU64::new(1) }))
    }

    /// A holder id that was never handed out before.
    pub fn fresh(&self) -> HolderId {
        self.holder(self.0.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The holder id behind a sequence number that a push names.
    pub fn holder(&self, seq: u64) -> HolderId {
        HolderId { client: self.0.id, seq }
    }

    /// This client's inbox.
    pub fn inbox(&self) -> InboxId {
        self.0.inbox
    }

    /// The process behind this client.
    pub fn who(&self) -> &Arc<Who> {
        &self.0.who
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_fresh_and_the_secret_stays_hidden() {
        let secret = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
        let client = Client::new(ClientId::from_random(secret), Who::default());
        let twin = client.clone();
        let (a, b) = (client.fresh(), twin.fresh());
        assert_ne!(a, b);
        assert_ne!(a.public(), b.public());
        assert_eq!(a.public().to_string().len(), 10);
        let shown = format!("{a:?} {client:?} {}", a.public());
        assert!(!shown.contains("0123456789abcdef") && !shown.contains(&secret.to_string()), "{shown}");
    }

    #[test]
    fn an_id_is_what_is_read_of_it() {
        let client = Client::new(ClientId::from_random(7), Who::default());
        for id in std::iter::repeat_with(|| client.fresh().public()).take(100) {
            let text = id.to_string();
            assert_eq!((text.parse(), text.to_uppercase().parse()), (Ok(id), Ok(id)));
        }
        assert_eq!("0O1iIlL000".parse::<PublicId>().unwrap().to_string(), "0011111000");
        for wrong in ["", "k3j0a9x7q", "k3j0a9x7qt0", "k3j0a9x7qu", "k3j0a9x7q\u{e9}", "k3j0a9x7-t"] {
            let error = wrong.parse::<PublicId>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("{wrong:?} is no public id")), "{error}");
        }
    }
}
