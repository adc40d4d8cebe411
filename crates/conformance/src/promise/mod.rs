//! The promises: one public async function each, a short story about clients of one store.
//!
//! A story proves by what the store answers (its clock, what is left of a lease), and waits only for ends to have passed; so it is as
//! right on a slow machine as on a virtual clock. A broken promise panics; one that does not apply returns a
//! [`Skip`](crate::Skip).

pub mod bounds;
pub mod calls;
pub mod cancel;
pub mod exclusion;
pub mod expiry;
pub mod fifo;
pub mod handoff;
pub mod heartbeat;
pub mod inspect;
pub mod kinds;
pub mod list;
pub mod names;
pub mod permits;
pub mod pushes;
pub mod readwrite;
pub mod release;
pub mod renewal;
pub mod resend;
pub mod revoke;
pub mod tokens;
pub mod upgrade;
pub mod window;

use std::time::Duration;

use bandog_core::op::Standing;
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;

/// What a conversion between two forms of a record may add to a lease.
const TICK: Duration = Duration::from_millis(1);

/// Whether two times on the store's clock are the same, up to a conversion.
fn same_time(one: LeaseTime, other: LeaseTime) -> bool {
    one.since(other).max(other.since(one)) <= TICK
}

/// Whether two lengths are the same, up to a conversion.
fn same_length(one: Duration, other: Duration) -> bool {
    one.abs_diff(other) <= TICK
}

/// The stamp of a claim that must have been granted by now.
fn granted(standing: &Standing) -> Stamp {
    match standing {
        Standing::Granted(grant) => grant.stamp,
        other => panic!("expected to find a grant, found {other:?}"),
    }
}

/// Whether a claim still stands in line.
fn is_queued(standing: &Standing) -> bool {
    matches!(standing, Standing::Queued(_))
}
