//! Numbers as the scripts read them with `struct.unpack`: unsigned and big-endian. Used for calls; answers carry integers.

use std::time::Duration;

/// Larger than every time and stamp, and small enough that a Lua number stays exact when two of them are added.
const FAR: u64 = 1 << 52;

/// Bytes in the making, at the end of a buffer.
#[derive(Debug)]
pub(super) struct Pack<'a>(pub(super) &'a mut Vec<u8>);

impl Pack<'_> {
    /// Eight bytes. Numbers beyond the range of a Lua number are held at its end.
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.raw(&number.min(FAR).to_be_bytes())
    }

    /// Eight bytes; parts of a millisecond are cut off, as the ledger does.
    pub(super) fn millis(&mut self, length: Duration) -> &mut Self {
        self.number(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
    }

    /// Four bytes.
    pub(super) fn small(&mut self, number: u32) -> &mut Self {
        self.raw(&number.to_be_bytes())
    }

    /// One byte.
    pub(super) fn byte(&mut self, byte: u8) -> &mut Self {
        self.raw(&[byte])
    }

    /// One byte, 0 or 1.
    pub(super) fn flag(&mut self, flag: bool) -> &mut Self {
        self.byte(u8::from(flag))
    }

    /// Bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }
}
