//! The only place where lock names become keys and inboxes become channels, and back. The codec and the listing use it.
//!
//! A key is the prefix and then the name's own bytes: two names cannot meet in one key, whatever characters they hold.

use bandog_core::holder::InboxId;
use bandog_core::name::LockName;

/// What a lock's key begins with unless told otherwise.
pub const DEFAULT_PREFIX: &str = "lock:";

/// How this store's keys and channels are spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Default for Keys {
    fn default() -> Self {
        Self::new(DEFAULT_PREFIX)
    }
}

impl Keys {
    /// Keys that begin with `prefix`; it may be empty.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// What every key begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of a lock.
    pub fn key(&self, name: &LockName) -> Vec<u8> {
        [self.prefix.as_bytes(), name.as_str().as_bytes()].concat()
    }

    /// The lock behind a key; `None` for a key that is not ours.
    pub fn name(&self, key: &[u8]) -> Option<LockName> {
        let name = key.strip_prefix(self.prefix.as_bytes())?;
        LockName::new(std::str::from_utf8(name).ok()?).ok()
    }

    /// A glob for `SCAN` that matches every key of ours, and possibly others: [`Keys::name`] and the type decide.
    pub fn glob(&self) -> Vec<u8> {
        [self.glob_start(), b"*".to_vec()].concat()
    }

    /// The prefix as a glob that matches nothing else.
    pub(crate) fn glob_start(&self) -> Vec<u8> {
        let escape = |byte: u8| {
            let special = matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^' | b'-');
            special.then_some(b'\\').into_iter().chain([byte])
        };
        self.prefix.bytes().flat_map(escape).collect()
    }

    /// What every inbox's channel begins with. Channels and keys are different things to Redis and cannot meet.
    pub fn channels(&self) -> Vec<u8> {
        [self.prefix.as_bytes(), b"inbox:"].concat()
    }

    /// The channel of an inbox.
    pub fn channel(&self, inbox: InboxId) -> Vec<u8> {
        [&self.channels()[..], &inbox_digits(inbox)].concat()
    }

    /// The channel of a connection's echo.
    pub(crate) fn echo(&self, echo: Echo) -> Vec<u8> {
        [&self.channels()[..], &echo.0].concat()
    }

    /// The inbox behind a channel.
    pub fn inbox(&self, channel: &[u8]) -> Option<InboxId> {
        let digits = channel.strip_prefix(self.channels().as_slice())?;
        let bits = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        Some(InboxId::from_bits(bits)).filter(|inbox| inbox_digits(*inbox) == digits)
    }
}

/// The end of a channel at which one connection listens for itself (decision 0022). A script that has news for others sends an empty
/// message there before, and so the connection that asked is served last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo(pub(crate) [u8; 16]);

impl Echo {
    /// One of its own, if the bits are random.
    pub fn from_bits(bits: u64) -> Self {
        let mut digits = inbox_digits(InboxId::from_bits(bits));
        // So that nobody takes it for an inbox.
        digits[..4].copy_from_slice(b"echo");
        Self(digits)
    }
}

/// An inbox as the scripts write it: 16 hexadecimal digits.
pub(crate) fn inbox_digits(inbox: InboxId) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = inbox.to_bits().to_be_bytes();
    std::array::from_fn(|at| {
        let byte = bytes[at / 2];
        DIGITS[usize::from(if at % 2 == 0 { byte >> 4 } else { byte & 15 })]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_inboxes_survive_the_way_there_and_back() {
        for keys in [Keys::default(), Keys::new(""), Keys::new("a*b:")] {
            for text in ["order:1001", "inbox:0", "{x}*?[]\\", "zażółć 🐕"] {
                let name = LockName::new(text).unwrap();
                assert_eq!(keys.name(&keys.key(&name)), Some(name));
            }
            let inbox = InboxId::from_bits(0xabc);
            assert_eq!(keys.inbox(&keys.channel(inbox)), Some(inbox));
            assert_eq!(keys.inbox(&keys.echo(Echo::from_bits(0xabc))), None);
        }
        assert_eq!(Keys::default().key(&LockName::new("a").unwrap()), b"lock:a");
        assert_eq!(Keys::default().channel(InboxId::from_bits(1)), b"lock:inbox:0000000000000001");
        assert_eq!(Keys::new("a*:").glob(), b"a\\*:*");
    }

    #[test]
    fn foreign_key_has_no_lock_name() {
        let keys = Keys::default();
        for key in [&b"lock"[..], b"lock:", b"other:a", b"lock:\xff", b"lock:a\nb"] {
            assert_eq!(keys.name(key), None);
        }
        for channel in [&b"lock:inbox:"[..], b"lock:inbox:+000000000000001", b"lock:inbox:1", b"inbox:0000000000000001"]
        {
            assert_eq!(keys.inbox(channel), None);
        }
    }
}
