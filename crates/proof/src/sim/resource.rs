//! What the lock protects: one resource that checks tokens, and one that trusts.

/// Both resources of a world.
#[derive(Debug, Clone, Default)]
pub struct Resource {
    highest: u64,
    /// Writes that the trusting resource took although a later holder had written before.
    pub stale_writes: u64,
}

impl Resource {
    /// Offers a write to both; says whether the one that checks took it.
    pub fn write(&mut self, token: u64) -> bool {
        let fresh = token >= self.highest;
        self.highest = self.highest.max(token);
        self.stale_writes += u64::from(!fresh);
        fresh
    }
}
