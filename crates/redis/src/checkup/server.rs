//! What sort of server it is: its version, its role, and whether it stands alone.

use bandog_core::checkup::{Check, Remark};

use super::said::Said;
use crate::topology::OLDEST;

pub(super) const VERSION: Check =
    Check::new("version", "the scripts and permissions of locks need a server that knows them and keeps users apart");
pub(super) const ROLE: Check = Check::new("role", "a replica refuses locks, and forgets what was written to it");
pub(super) const MODE: Check =
    Check::new("mode", "locks are kept by one server; a node of a cluster has only some of them, a sentinel none");

/// Releases since which a script can no longer break out of its server (CVE-2025-49844), in series that got one. Whoever may
/// take locks may run scripts.
///
/// Redis: docker-library/official-images#20011 on GitHub. Valkey 8.1: valkey-helm#31 there.
const REPAIRED: &[(&str, [u64; 3])] = &[
    ("Redis", [6, 2, 20]),
    ("Redis", [7, 2, 11]),
    ("Redis", [7, 4, 6]),
    ("Redis", [8, 0, 4]),
    ("Redis", [8, 2, 2]),
    ("Valkey", [7, 2, 11]),
    ("Valkey", [8, 0, 6]),
    ("Valkey", [8, 1, 4]),
];

/// Later series of Redis began repaired.
const NEWEST_REPAIRED: (u64, u64) = (8, 2);

pub(super) fn version(said: &Said) -> Remark {
    // Valkey says beside its own version which Redis it is like.
    let (maker, text) = match (said.field("valkey_version"), said.field("redis_version")) {
        (Some(version), _) => ("Valkey", version),
        (None, Some(version)) => ("Redis", version),
        (None, None) => return said.no_info(VERSION),
    };
    let saw = format!("{maker} {text}");
    let numbers: Vec<u64> = text.split('.').map_while(|part| part.parse().ok()).collect();
    let [major, minor, patch] = [0, 1, 2].map(|at| numbers.get(at).copied().unwrap_or(0));
    if (major, minor) < OLDEST {
        let (major, minor) = OLDEST;
        return VERSION.wrong(saw).change(format!("use Redis {major}.{minor} or later, or Valkey"));
    }
    let repaired = REPAIRED.iter().find(|(who, [a, b, _])| *who == maker && (*a, *b) == (major, minor));
    match repaired {
        Some((_, [_, _, since])) if patch < *since => VERSION
            .risky(format!("{saw}, in which a script can take over the server (CVE-2025-49844)"))
            .change(format!("use {maker} {major}.{minor}.{since} or later, or a package with that repaired")),
        // Distributions repair theirs under the old number, and INFO does not tell whose it is.
        None if maker == "Redis" && (major, minor) < NEWEST_REPAIRED => VERSION
            .risky(format!("{saw}, in which a script can take over the server (CVE-2025-49844); no release of this series repairs it"))
            .change("use a later series, such as Redis 7.2.11 or 8.2.2, or a package of a distribution with that repaired"),
        _ => VERSION.fine(saw),
    }
}

pub(super) fn role(said: &Said) -> Remark {
    let Some(role) = said.field("role") else { return said.no_info(ROLE) };
    if role == "master" {
        return ROLE.fine("it is a master");
    }
    let master = said.field("master_host").zip(said.field("master_port"));
    // INFO keeps the old word.
    let remark = ROLE.wrong(format!("it is a {}", if role == "slave" { "replica" } else { role }));
    match master {
        Some((host, port)) => remark.change(format!("use its master: redis://{host}:{port}")),
        None => remark.change("use its master"),
    }
}

pub(super) fn mode(said: &Said) -> Remark {
    // Redis and Valkey name it differently.
    match said.field("redis_mode").or_else(|| said.field("server_mode")) {
        Some("standalone") => MODE.fine("a single server"),
        Some(mode) => MODE
            .wrong(format!("its mode is {mode}"))
            .change("cluster-enabled no (in redis.conf, on a server of its own)"),
        None => said.no_info(MODE),
    }
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn versions_are_judged_by_maker_and_series() {
        for (fields, fitness) in [
            (&[("redis_version", "5.0.7")][..], Fitness::Wrong),
            (&[("redis_version", "6.0.20")], Fitness::Wrong),
            (&[("redis_version", "6.2.14")], Fitness::Risky),
            (&[("redis_version", "6.2.20")], Fitness::Fine),
            (&[("redis_version", "7.0.15")], Fitness::Risky),
            (&[("redis_version", "7.4.5")], Fitness::Risky),
            (&[("redis_version", "8.2.10")], Fitness::Fine),
            (&[("redis_version", "10.0.0")], Fitness::Fine),
            (&[("redis_version", "7.2.4"), ("valkey_version", "8.1.3")], Fitness::Risky),
            (&[("redis_version", "7.2.4"), ("valkey_version", "9.1.2")], Fitness::Fine),
            (&[], Fitness::Unknown),
        ] {
            assert_eq!(version(&Said::of(fields, &[])).fitness, fitness, "{fields:?}");
        }
    }

    #[test]
    fn a_series_without_a_repair_is_told() {
        for (field, number, told) in [
            ("redis_version", "7.0.15", true),
            ("redis_version", "7.2.11", false),
            ("redis_version", "8.4.0", false),
            ("valkey_version", "9.0.0", false),
        ] {
            let remark = version(&Said::of(&[(field, number)], &[]));
            assert_eq!(remark.fitness == Fitness::Risky && remark.change.is_some(), told, "{number}");
            assert_eq!(remark.saw.contains("no release of this series repairs it"), told, "{remark:?}");
        }
    }

    #[test]
    fn a_replica_is_told_with_its_master() {
        let said = Said::of(&[("role", "slave"), ("master_host", "db1"), ("master_port", "6380")], &[]);
        assert_eq!(role(&said).change.as_deref(), Some("use its master: redis://db1:6380"));
        assert_eq!(role(&said).saw, "it is a replica");
        assert_eq!(mode(&Said::of(&[("server_mode", "cluster")], &[])).fitness, Fitness::Wrong);
        assert_eq!(mode(&Said::of(&[("redis_mode", "standalone")], &[])).fitness, Fitness::Fine);
    }
}
