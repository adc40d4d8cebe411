//! Connections: whether the server cuts quiet ones, and whether there is room for more.

use bandog_core::checkup::{Check, Pace, Remark, brief};

use super::said::Said;
use super::words::percent;

pub(super) const TIMEOUT: Check = Check::new(
    "timeout",
    "a server that cuts quiet connections cuts those of holders between two renewals, and of scripts that keep a ticket",
);
pub(super) const CONNECTIONS: Check = Check::new(
    "connections",
    "each client has three connections; one that cannot connect can neither acquire nor renew",
);

/// So many watchdog periods may pass before a connection counts as quiet.
const PERIODS: u64 = 3;
/// What one client needs.
const OURS: u64 = 3;

pub(super) fn timeout(said: &Said, pace: &Pace) -> Remark {
    let Some(seconds) = said.size("timeout") else { return said.no_setting(TIMEOUT) };
    let needed = pace.watchdog_period.as_secs().saturating_mul(PERIODS).max(PERIODS);
    match seconds {
        0 => TIMEOUT.fine("quiet connections are never cut"),
        seconds if seconds > needed => TIMEOUT.fine(format!(
            "quiet connections are cut after {seconds} s; bandog's are never quiet that long (watchdog period {})",
            brief(pace.watchdog_period)
        )),
        seconds => TIMEOUT
            .risky(format!("connections are cut after {seconds} s without a word"))
            .change("CONFIG SET timeout 0"),
    }
}

pub(super) fn connections(said: &Said) -> Remark {
    let limit = said.number("maxclients").or_else(|| said.size("maxclients"));
    let (Some(limit), Some(open)) = (limit, said.number("connected_clients")) else { return said.no_info(CONNECTIONS) };
    let saw = format!("{open} of {limit} are open");
    let more = format!("CONFIG SET maxclients {}", limit.saturating_mul(2));
    if open.saturating_add(OURS) > limit {
        return CONNECTIONS.wrong(saw).change(more);
    }
    if percent(open, limit) >= 80 {
        return CONNECTIONS.risky(saw).change(more);
    }
    CONNECTIONS.fine(saw)
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn a_timeout_is_judged_by_the_watchdog() {
        let of = |seconds| timeout(&Said::of(&[], &[("timeout", seconds)]), &Pace::default()).fitness;
        assert_eq!((of("0"), of("300")), (Fitness::Fine, Fitness::Fine));
        assert_eq!((of("5"), of("15")), (Fitness::Risky, Fitness::Risky));
        assert_eq!(timeout(&Said::default(), &Pace::default()).fitness, Fitness::Unknown);
    }

    #[test]
    fn room_for_connections_is_judged() {
        let of =
            |open, limit| connections(&Said::of(&[("connected_clients", open), ("maxclients", limit)], &[])).fitness;
        assert_eq!(of("10", "10000"), Fitness::Fine);
        assert_eq!(of("80", "100"), Fitness::Risky);
        assert_eq!(of("98", "100"), Fitness::Wrong);
        assert_eq!(connections(&Said::default()).fitness, Fitness::Unknown);
    }
}
