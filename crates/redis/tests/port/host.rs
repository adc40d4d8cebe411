//! Where a pair's scripts run: in the fake, or on a real server whose clock the test sets.

use bandog_fake::Fake;
use bandog_redis::{Call, Value};

/// Something that runs scripts.
pub(crate) trait Host {
    fn run(&self, call: &Call) -> Value;
    /// What was published since the last look: channel and payload.
    fn published(&self) -> Vec<(Vec<u8>, Vec<u8>)>;
    fn set_micros(&self, micros: u64);
    fn delete(&self, key: &[u8]);
    /// Takes a key's end away, as an operator might.
    fn persist(&self, key: &[u8]);
    /// When a key ends, in milliseconds: nothing without a key, nothing inside without an end.
    fn ends(&self, key: &[u8]) -> Option<Option<u64>>;
    /// Whether the fields of a key belong together.
    fn check(&self, key: &[u8]) -> Result<(), String>;
    /// Whether keys go by themselves at their end.
    fn expires(&self) -> bool;
}

impl Host for Fake {
    fn run(&self, call: &Call) -> Value {
        self.run(call)
    }

    fn published(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.published()
    }

    fn set_micros(&self, micros: u64) {
        self.set_micros(micros);
    }

    fn delete(&self, key: &[u8]) {
        self.put(key, None);
    }

    fn persist(&self, key: &[u8]) {
        self.persist(key);
    }

    fn ends(&self, key: &[u8]) -> Option<Option<u64>> {
        self.ends(key)
    }

    fn check(&self, key: &[u8]) -> Result<(), String> {
        self.check(key)
    }

    fn expires(&self) -> bool {
        true
    }
}
