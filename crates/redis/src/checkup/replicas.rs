//! Replicas: what a failover forgets, and whether the server waits for replicas that are not there.

use bandog_core::checkup::{Check, Remark, counted};

use super::said::Said;

pub(super) const REPLICATION: Check = Check::new(
    "replication",
    "bandog does not wait for replicas: when one takes over, grants that had not reached it are given again. \
     min-replicas-to-write bounds how long a master that was cut off goes on granting",
);

pub(super) fn replication(said: &Said) -> Remark {
    let Some(replicas) = said.number("connected_slaves") else { return said.no_info(REPLICATION) };
    let needed = said.size("min-replicas-to-write");
    // Said by INFO only where some are needed.
    let good = said.number("min_slaves_good_slaves").unwrap_or(replicas);
    match (replicas, needed) {
        (_, Some(needed)) if good < needed => REPLICATION
            .wrong(format!(
                "{}, and min-replicas-to-write is {needed}: it refuses writes",
                counted(good, "good replica")
            ))
            .change(format!("CONFIG SET min-replicas-to-write {good} (or put the replicas right)")),
        (0, _) => REPLICATION.fine("no replicas: nothing takes over, and nothing is forgotten by that"),
        (_, Some(0)) => {
            REPLICATION.risky(format!("{}, and min-replicas-to-write is 0", counted(replicas, "replica"))).change(
                "CONFIG SET min-replicas-to-write 1 (leave it where replicas are only backups, and never take over)",
            )
        }
        (_, Some(needed)) => {
            REPLICATION.fine(format!("{}, {good} of them good, {needed} needed to write", counted(replicas, "replica")))
        }
        (_, None) => {
            let mut remark = said.no_setting(REPLICATION);
            remark.saw =
                format!("{}; how many it needs to write is not known: {}", counted(replicas, "replica"), remark.saw);
            remark
        }
    }
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn replicas_are_judged_with_how_many_are_needed() {
        let of = |replicas, good: &str, needed| {
            let info = [("connected_slaves", replicas), ("min_slaves_good_slaves", good)];
            let info = if good.is_empty() { &info[..1] } else { &info[..] };
            replication(&Said::of(info, &[("min-replicas-to-write", needed)])).fitness
        };
        assert_eq!(of("0", "", "0"), Fitness::Fine);
        assert_eq!(of("2", "", "0"), Fitness::Risky);
        assert_eq!(of("2", "2", "1"), Fitness::Fine);
        assert_eq!(of("2", "0", "1"), Fitness::Wrong);
        assert_eq!(of("0", "0", "1"), Fitness::Wrong);
        assert_eq!(replication(&Said::of(&[("connected_slaves", "1")], &[])).fitness, Fitness::Unknown);
        assert_eq!(replication(&Said::default()).fitness, Fitness::Unknown);
    }
}
