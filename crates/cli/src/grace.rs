//! How much time a command is given at the end, beside a lease: the grace between TERM and KILL, and the margin between KILL and the
//! end of the lease.

use std::time::Duration;

use bandog::{LockConfig, Locks};

use crate::args::{OnLost, Run};
use crate::child::Respite;
use crate::failure::Failure;
use crate::note::short;

const USUAL: Duration = Duration::from_secs(5);
/// Enough for the dead to go, and for a busy machine to get there.
const MARGIN: Duration = Duration::from_millis(100);

/// The lease, and the times that were asked for, if they fit, or the usual ones.
pub(crate) fn checked(locks: &Locks, args: &Run) -> Result<(Duration, Respite), Failure> {
    let mut config = locks.defaults().clone();
    if let Some(lease) = args.lock.lease {
        let set = config.set("lease", &format!("{}ms", lease.as_millis()));
        set.map_err(|error| Failure::usage(error.to_string()))?;
    }
    let (lease, margin) = (config.lease(), MARGIN.min(config.lease() / 10));
    let room = room(&config).saturating_sub(margin);
    // Only a TERM that must end before the lease does needs the room.
    let fits = |grace: Duration| grace < room || args.on_lost != OnLost::Term;
    let grace = match args.grace {
        None => USUAL.min(room / 2),
        Some(grace) if fits(grace) => grace,
        // A wish for all locks gives way to the lease of one.
        Some(_) if args.grace_is_a_wish => room / 2,
        Some(grace) => return Err(too_long(grace, room, lease)),
    };
    Ok((lease, Respite { grace, margin }))
}

fn too_long(grace: Duration, room: Duration, lease: Duration) -> Failure {
    let (grace, rest, room, lease) = (short(grace), short(lease - room), short(room), short(lease));
    let why = format!("renewing and ending need {rest} of the lease ({lease}), so the grace must be less than {room}");
    Failure::usage(format!("--grace {grace} does not fit: {why}; shorten it or lengthen --lease"))
}

/// What a lease leaves: not the time to the next renewal, and a tenth for its answer.
fn room(config: &LockConfig) -> Duration {
    config.lease().saturating_sub(config.renewal_period()).saturating_sub(config.lease() / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_fits_before_the_grace_begins() {
        let mut config = LockConfig::default();
        assert_eq!(room(&config), Duration::from_secs(17));
        config.set("renew_every", "30s").unwrap();
        assert_eq!(room(&config), Duration::ZERO);
    }
}
