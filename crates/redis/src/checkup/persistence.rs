//! What a restart forgets, and whether the server can still save what it should.

use bandog_core::checkup::{Check, Remark};

use super::said::Said;
use super::words;

pub(super) const PERSISTENCE: Check = Check::new(
    "persistence",
    "a restart forgets what was not saved: grants that it forgets may be given again while their holders still believe, and \
     releases that it forgets block until their leases end",
);
pub(super) const SAVING: Check = Check::new(
    "saving",
    "a server that cannot save refuses writes: nothing is acquired, renewed or released, and holds are lost",
);

const LOG: &str = "CONFIG SET appendonly yes";

pub(super) fn persistence(said: &Said) -> Remark {
    let logs = said.field("aof_enabled").map(|flag| flag == "1");
    let Some(logs) = logs.or_else(|| said.setting("appendonly").map(|flag| flag == "yes")) else {
        return said.no_info(PERSISTENCE);
    };
    if logs {
        return log(said);
    }
    match said.setting("save") {
        Some("") => PERSISTENCE.risky("nothing is saved: a restart forgets every hold").change(LOG),
        Some(save) => PERSISTENCE
            .risky(format!(
                "snapshots only (save {save}): a restart forgets the holds since the last, and brings back older ones"
            ))
            .change(LOG),
        None => {
            let note = said.without_settings();
            PERSISTENCE.risky(format!("no append-only file: a restart forgets holds{note}")).change(LOG)
        }
    }
}

fn log(said: &Said) -> Remark {
    match said.setting("appendfsync") {
        Some("always") => PERSISTENCE.fine("append-only file, synced at each write: a restart forgets nothing"),
        Some("everysec") => {
            PERSISTENCE.fine("append-only file, synced every second: a crash of the machine forgets up to a second")
        }
        Some(other) => PERSISTENCE
            .risky(format!(
                "append-only file with appendfsync {other}: a crash of the machine forgets up to half a minute"
            ))
            .change("CONFIG SET appendfsync everysec"),
        None => PERSISTENCE.fine(format!("append-only file{}", said.without_settings())),
    }
}

pub(super) fn saving(said: &Said) -> Remark {
    if said.field("loading") == Some("1") {
        return SAVING
            .wrong("it is loading its data: nothing can be acquired before it is done")
            .change(words::remedy("LOADING"));
    }
    let (Some(snapshot), written) = (said.field("rdb_last_bgsave_status"), said.field("aof_last_write_status")) else {
        return said.no_info(SAVING);
    };
    let disk = "look at the disk and at the permissions of its directory (CONFIG GET dir), then BGSAVE";
    if written == Some("err") {
        return SAVING.wrong("its last write to the append-only file failed, so it refuses writes").change(disk);
    }
    if snapshot != "ok" {
        return failed_snapshot(said, disk);
    }
    match said.field("aof_last_bgrewrite_status") {
        Some("err") => SAVING.risky("its last rewrite of the append-only file failed: the file grows").change(disk),
        _ => SAVING.fine("nothing failed"),
    }
}

// It stops writes only where snapshots are to be made by themselves.
fn failed_snapshot(said: &Said, disk: &str) -> Remark {
    let failed = "its last snapshot failed";
    match (said.setting("stop-writes-on-bgsave-error"), said.setting("save")) {
        (Some("no"), _) | (_, Some("")) => SAVING.risky(format!("{failed}; writes go on")).change(disk),
        (Some(_), Some(_)) => {
            SAVING.wrong(format!("{failed}, so it refuses writes (stop-writes-on-bgsave-error yes)")).change(disk)
        }
        _ => SAVING.risky(format!("{failed}; it may refuse writes{}", said.without_settings())).change(disk),
    }
}

#[cfg(test)]
mod tests {
    use bandog_core::checkup::Fitness;

    use super::*;

    #[test]
    fn persistence_is_judged_by_what_a_restart_forgets() {
        let of = |logs, save, sync| {
            persistence(&Said::of(&[("aof_enabled", logs)], &[("save", save), ("appendfsync", sync)])).fitness
        };
        assert_eq!(of("1", "", "always"), Fitness::Fine);
        assert_eq!(of("1", "", "everysec"), Fitness::Fine);
        assert_eq!(of("1", "", "no"), Fitness::Risky);
        assert_eq!(of("0", "3600 1", "everysec"), Fitness::Risky);
        assert_eq!(of("0", "", "everysec"), Fitness::Risky);
        assert_eq!(persistence(&Said::default()).fitness, Fitness::Unknown);
    }

    #[test]
    fn a_failed_save_is_wrong_where_it_stops_writes() {
        let of = |info: &[(&str, &str)], settings: &[(&str, &str)]| saving(&Said::of(info, settings)).fitness;
        let failed = &[("rdb_last_bgsave_status", "err")];
        assert_eq!(of(failed, &[("stop-writes-on-bgsave-error", "yes"), ("save", "60 1")]), Fitness::Wrong);
        assert_eq!(of(failed, &[("stop-writes-on-bgsave-error", "yes"), ("save", "")]), Fitness::Risky);
        assert_eq!(of(failed, &[("stop-writes-on-bgsave-error", "no"), ("save", "60 1")]), Fitness::Risky);
        assert_eq!(of(failed, &[]), Fitness::Risky);
        let good = ("rdb_last_bgsave_status", "ok");
        assert_eq!(of(&[good], &[]), Fitness::Fine);
        assert_eq!(of(&[good, ("aof_last_write_status", "err")], &[]), Fitness::Wrong);
        assert_eq!(of(&[good, ("aof_last_bgrewrite_status", "err")], &[]), Fitness::Risky);
        assert_eq!(of(&[good, ("loading", "1")], &[]), Fitness::Wrong);
    }
}
