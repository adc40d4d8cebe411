//! Memory: whether locks are thrown away when it is short, and how short it is.

use bandog_core::checkup::{Check, Remark};

use super::said::Said;
use super::words::{bytes, percent};

pub(super) const EVICTION: Check = Check::new(
    "eviction",
    "when memory is short, any policy but noeviction throws locks away while they are held, those with a lease first",
);
pub(super) const MEMORY: Check = Check::new(
    "memory",
    "without memory nothing can be acquired; a server that takes more than the machine has is killed, with all its locks",
);

/// From here on it is short, in hundredths of the limit.
const SHORT: u64 = 80;
const GONE: u64 = 97;
/// And of a machine's memory, where there is no limit: a save may need as much again.
const CROWDED: u64 = 50;

pub(super) fn eviction(said: &Said) -> Remark {
    let policy = said.field("maxmemory_policy").or_else(|| said.setting("maxmemory-policy"));
    let Some(policy) = policy else { return said.no_info(EVICTION) };
    if policy == "noeviction" {
        return EVICTION.fine("maxmemory-policy is noeviction");
    }
    let remark = match limit(said) {
        Some(0) => {
            EVICTION.risky(format!("maxmemory-policy is {policy}; nothing is evicted while there is no maxmemory"))
        }
        _ => EVICTION.wrong(format!("maxmemory-policy is {policy}")),
    };
    remark.change("CONFIG SET maxmemory-policy noeviction")
}

pub(super) fn headroom(said: &Said) -> Remark {
    let (Some(limit), Some(used)) = (limit(said), said.number("used_memory")) else { return said.no_info(MEMORY) };
    if limit > 0 {
        return of_limit(used, limit);
    }
    let (rss, system) =
        (said.number("used_memory_rss").unwrap_or(used), said.number("total_system_memory").unwrap_or(0));
    if system == 0 {
        return MEMORY.fine(format!("{} used, no maxmemory", bytes(used)));
    }
    let share = percent(rss, system);
    let saw = format!("{} used, {share} % of the machine's {}; no maxmemory", bytes(rss), bytes(system));
    if share < CROWDED {
        return MEMORY.fine(saw);
    }
    MEMORY.risky(saw).change(format!("CONFIG SET maxmemory {}", system / 4 * 3))
}

fn of_limit(used: u64, limit: u64) -> Remark {
    let share = percent(used, limit);
    let saw = format!("{} used, {share} % of maxmemory ({})", bytes(used), bytes(limit));
    let more = format!("CONFIG SET maxmemory {}", limit.saturating_mul(2).max(used.saturating_mul(2)));
    match share {
        0..SHORT => MEMORY.fine(saw),
        SHORT..GONE => MEMORY.risky(saw).change(more),
        _ => MEMORY.wrong(saw).change(more),
    }
}

fn limit(said: &Said) -> Option<u64> {
    said.number("maxmemory").or_else(|| said.size("maxmemory"))
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn memory_is_short_by_the_limit_or_by_the_machine() {
        let said = |used, limit, system| {
            Said::of(&[("used_memory", used), ("maxmemory", limit), ("total_system_memory", system)], &[])
        };
        for (used, limit, system, fitness) in [
            ("70", "100", "1000", Fitness::Fine),
            ("85", "100", "1000", Fitness::Risky),
            ("99", "100", "1000", Fitness::Wrong),
            ("200", "100", "1000", Fitness::Wrong),
            ("499", "0", "1000", Fitness::Fine),
            ("500", "0", "1000", Fitness::Risky),
        ] {
            assert_eq!(headroom(&said(used, limit, system)).fitness, fitness, "{used} of {limit}, {system}");
        }
        assert_eq!(headroom(&Said::default()).fitness, Fitness::Unknown);
    }

    #[test]
    fn eviction_harms_only_where_there_is_a_limit() {
        let said = |policy, limit| Said::of(&[("maxmemory_policy", policy), ("maxmemory", limit)], &[]);
        assert_eq!(eviction(&said("noeviction", "100")).fitness, Fitness::Fine);
        assert_eq!(eviction(&said("volatile-ttl", "100")).fitness, Fitness::Wrong);
        assert_eq!(eviction(&said("allkeys-lru", "0")).fitness, Fitness::Risky);
        assert_eq!(eviction(&Said::default()).fitness, Fitness::Unknown);
    }
}
