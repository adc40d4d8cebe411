//! Records and looks for tests.

use std::sync::Arc;
use std::time::Duration;

use bandog::op::{HolderView, RecordView, WaiterView};
use bandog::{Mode, PublicId, Stamp, Who};
use bandog_core::time::WallTime;

pub(crate) const SECOND: u64 = 1_000_000;

pub(crate) fn id(bits: u64) -> PublicId {
    // The digits show the high bits.
    PublicId::from_bits(bits << 14)
}

pub(crate) fn who(bits: u64) -> Arc<Who> {
    Arc::new(Who { host: "web1".into(), pid: u32::try_from(bits).unwrap(), label: String::new() })
}

pub(crate) fn holder(bits: u64, since: u64, left: u64) -> HolderView {
    HolderView {
        id: id(bits),
        who: who(bits),
        mode: Mode::Exclusive,
        stamp: Stamp::from_micros(since * SECOND),
        since: WallTime::from_micros(since * SECOND),
        remaining: Duration::from_secs(left),
        revoked: None,
    }
}

pub(crate) fn waiter(bits: u64, since: u64) -> WaiterView {
    let since = WallTime::from_micros(since * SECOND);
    WaiterView { id: id(bits), who: who(bits), mode: Mode::Exclusive, fair: false, since }
}

pub(crate) fn record(holders: &[HolderView], waiters: &[WaiterView]) -> RecordView {
    let (holders, waiters) = (holders.to_vec(), waiters.to_vec());
    let queue = waiters.len();
    let last = holders.iter().map(|holder| holder.stamp).max().unwrap_or(Stamp::ZERO);
    RecordView { kind: None, last, holders, waiters, queue, revocations: Vec::new() }
}
