//! Who holds: the secret holder id that releases, the public id that people see, the inbox that is pushed to.
//!
//! The driver makes one [`Client`] per `Locks`; the lock machine takes a fresh [`HolderId`] from it for every claim.

use std::fmt::{self, Write as _};
use std::hash::Hasher;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::{SipHasher13, SipHasher24};
use siphasher::sip128::{self, Hasher128};

use crate::text::Harmless;

/// The 128 random bits of a client, from which the ids of all its claims are derived. They never leave the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(u128);

impl ClientId {
    /// Wraps 128 bits from a cryptographic random source.
    pub fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// The address of this client's inbox: derived one way, so it may be shown and published.
    pub fn inbox(self) -> InboxId {
        InboxId(self.digest(u64::MAX))
    }

    /// The id of this client's n-th claim. From one id no other can be derived.
    pub fn holder(self, ordinal: u64) -> HolderId {
        let mut hasher = sip128::SipHasher24::new_with_key(&self.0.to_le_bytes());
        hasher.write_u64(ordinal);
        HolderId { secret: Secret::from_bits(hasher.finish128().as_u128()), number: self.number(ordinal) }
    }

    /// Which of this client's claims a number names.
    pub fn ordinal(self, number: u64) -> u64 {
        let [left, right] = halves(number);
        let (left, right) = (0..ROUNDS).rev().fold((left, right), |(a, b), round| (b ^ self.mix(round, a), a));
        whole(left, right)
    }

    // A Feistel network over a keyed hash is a permutation: no two claims have one number, and whoever does not know the key
    // cannot tell one number from another.
    fn number(self, ordinal: u64) -> u64 {
        let [left, right] = halves(ordinal);
        let (left, right) = (0..ROUNDS).fold((left, right), |(a, b), round| (b, a ^ self.mix(round, b)));
        whole(left, right)
    }

    fn mix(self, round: u32, half: u32) -> u32 {
        let mut hasher = SipHasher13::new_with_key(&self.0.to_le_bytes());
        hasher.write_u64(whole(round, half));
        halves(hasher.finish())[1]
    }

    // SipHash keyed by the secret is a pseudo-random function: its output tells nothing about the key.
    fn digest(self, message: u64) -> u64 {
        digest(self.0, message)
    }
}

/// Three rounds make a permutation that cannot be told from a random one, so numbers cannot be guessed.
const ROUNDS: u32 = 3;

fn halves(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
}

fn whole(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

fn digest(key: u128, message: u64) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&key.to_le_bytes());
    hasher.write_u64(message);
    hasher.finish()
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientId(secret)")
    }
}

/// Proves one claim to the store.
// Not a u128, which is aligned to 16 bytes: every held lock has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "u128", into = "u128"))]
pub struct Secret([u64; 2]);

impl Secret {
    /// Rebuilds a secret from the bits that a store or a ticket wrote down.
    pub fn from_bits(bits: u128) -> Self {
        let whole = bits.to_be_bytes();
        let half = |from: usize| std::array::from_fn(|at| whole[from + at]);
        Self([u64::from_be_bytes(half(0)), u64::from_be_bytes(half(8))])
    }

    /// The bits, for stores and tickets that write them down.
    pub fn to_bits(self) -> u128 {
        let [high, low] = self.0;
        u128::from(high) << 64 | u128::from(low)
    }
}

#[cfg(feature = "serde")]
impl From<u128> for Secret {
    fn from(bits: u128) -> Self {
        Self::from_bits(bits)
    }
}

#[cfg(feature = "serde")]
impl From<Secret> for u128 {
    fn from(secret: Secret) -> Self {
        secret.to_bits()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The identity of one claim, written in the store: a secret, and the number by which pushes name the claim.
///
/// Whoever knows it can renew and release this one hold, so `Debug` prints only the [public id](Self::public). Both parts are
/// derived from the client's secret and are never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HolderId {
    /// Never published.
    pub secret: Secret,
    /// Published once, with the grant or the revocation of this claim. Until then only the store and the client know it, so a push
    /// that names it comes from the store.
    pub number: u64,
}

impl HolderId {
    /// The short id that people see; it cannot release anything.
    pub fn public(self) -> PublicId {
        PublicId(digest(self.secret.to_bits(), self.number) & SHOWN)
    }
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderId({})", self.public())
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
/// An id has no more bits than are shown, so people can type it.
const SHOWN: u64 = u64::MAX << (64 - 5 * DIGITS);

impl PublicId {
    /// Rebuilds an id from the bits a store wrote down; the last byte is not part of it.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & SHOWN)
    }

    /// The bits, for stores that write them down. The last byte is zero.
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
    /// The text as given.
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

/// What a claim says about its process, for people to read.
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

    /// The number of a claim that was never made before.
    pub fn next(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A holder id that was never handed out before.
    pub fn fresh(&self) -> HolderId {
        self.holder(self.next())
    }

    /// The id of the n-th claim.
    pub fn holder(&self, ordinal: u64) -> HolderId {
        self.0.id.holder(ordinal)
    }

    /// Which claim a push names by its number; `None` if there was no such claim, so the push is not from the store.
    pub fn ordinal(&self, number: u64) -> Option<u64> {
        let ordinal = self.0.id.ordinal(number);
        (1..self.0.next.load(Ordering::Relaxed)).contains(&ordinal).then_some(ordinal)
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
    fn a_number_names_its_claim_and_cannot_be_guessed() {
        let client = Client::new(ClientId::from_random(9), Who::default());
        let numbers: Vec<u64> = (1..=1000).map(|_| client.fresh().number).collect();
        let named: Vec<_> = numbers.iter().map(|number| client.ordinal(*number)).collect();
        assert_eq!(named, (1..=1000).map(Some).collect::<Vec<_>>());
        // Numbers near those handed out, and small ones, name nothing.
        let near = numbers.iter().flat_map(|number| [number.wrapping_add(1), number.wrapping_sub(1)]);
        assert_eq!(near.chain(0..10_000).filter(|number| client.ordinal(*number).is_some()).count(), 0);
    }

    #[test]
    fn one_id_tells_nothing_of_another() {
        let client = ClientId::from_random(9);
        let (first, second) = (client.holder(1), client.holder(2));
        assert_ne!(first.secret, second.secret);
        // With the number of another claim, the secret of one proves nothing.
        assert_ne!(HolderId { number: second.number, ..first }, second);
        assert_ne!(ClientId::from_random(10).holder(1).secret, first.secret);
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
