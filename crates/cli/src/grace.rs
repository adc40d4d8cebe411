//! The grace between TERM and KILL: how long it may be beside a lease.

use std::time::Duration;

use bandog::Locks;

use crate::args::{OnLost, Run};
use crate::exit::Exit;
use crate::note::short;
use crate::say::Failure;

const USUAL: Duration = Duration::from_secs(5);

/// The lease, and the grace that was asked for, if it fits, or the usual one.
pub(crate) fn checked(locks: &Locks, args: &Run) -> Result<(Duration, Duration), Failure> {
    let mut config = locks.defaults().clone();
    if let Some(lease) = args.lock.lease {
        let set = config.set("lease", &format!("{}ms", lease.as_millis()));
        set.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    }
    let (lease, period) = (config.lease(), config.renewal_period());
    let room = room(lease, period);
    match args.grace {
        None => Ok((lease, USUAL.min(room / 2))),
        // Only a TERM that must end before the lease does needs the room.
        Some(grace) if grace < room || args.on_lost != OnLost::Term => Ok((lease, grace)),
        Some(grace) => {
            let (grace, margin, room, lease) = (short(grace), short(lease - room), short(room), short(lease));
            let why = format!("a renewal needs {margin} of the lease ({lease}), so the grace must be less than {room}");
            Err(Failure::new(
                Exit::Usage,
                format!("--grace {grace} does not fit: {why}; shorten it or lengthen --lease"),
            ))
        }
    }
}

/// What a lease leaves for the grace: not the time to the next renewal, and a tenth for its answer.
fn room(lease: Duration, period: Duration) -> Duration {
    lease.saturating_sub(period).saturating_sub(lease / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_fits_before_the_grace_begins() {
        let secs = Duration::from_secs;
        assert_eq!(room(secs(30), secs(10)), secs(17));
        assert_eq!(room(secs(1), secs(1)), Duration::ZERO);
    }
}
