//! Servers with one bad setting each.

use bandog_core::checkup::Fitness::{Risky, Wrong};

use crate::support::{Server, if_possible, until};
use crate::{GOOD, ailing, examine, good_but, told};

#[test]
fn an_evicting_server_is_wrong() {
    if_possible(async {
        let server = good_but(&["--maxmemory-policy", "volatile-ttl"]);
        let found = examine(&server.url()).await;
        let remark = told(&found, "eviction", Wrong, &["volatile-ttl"]);
        let _: String = server.run(remark.change.as_ref().unwrap());
        assert_eq!(ailing(&found), ["eviction"]);
        assert_eq!(ailing(&examine(&server.url()).await), Vec::<&str>::new());
    });
}

#[test]
fn a_server_that_saves_nothing_is_risky() {
    if_possible(async {
        let server = Server::with(&["--maxmemory", "256mb"]);
        let found = examine(&server.url()).await;
        let remark = told(&found, "persistence", Risky, &["nothing is saved"]);
        let _: String = server.run(remark.change.as_ref().unwrap());
        assert_eq!(ailing(&found), ["persistence"]);
        assert_eq!(ailing(&examine(&server.url()).await), Vec::<&str>::new());
        let snapshots = Server::with(&["--maxmemory", "256mb", "--save", "3600", "1"]);
        told(&examine(&snapshots.url()).await, "persistence", Risky, &["snapshots only", "3600 1"]);
    });
}

#[test]
fn a_server_that_cannot_save_is_wrong() {
    if_possible(async {
        let gone = std::env::temp_dir().join(format!("bandog-gone-{}", std::process::id()));
        std::fs::create_dir_all(&gone).unwrap();
        let server = Server::with(&["--save", "3600", "1", "--dir", &gone.to_string_lossy()]);
        std::fs::remove_dir_all(&gone).unwrap();
        let _: String = server.run("BGSAVE");
        let has_failed = || server.run::<String>("INFO persistence").contains("rdb_last_bgsave_status:err");
        until("the save has failed", has_failed).await;
        let found = examine(&server.url()).await;
        told(&found, "saving", Wrong, &["last snapshot failed", "refuses writes"]);
        told(&found, "locking", Wrong, &["MISCONF"]);
        let _: String = server.run("CONFIG SET stop-writes-on-bgsave-error no");
        let found = examine(&server.url()).await;
        told(&found, "saving", Risky, &["writes go on"]);
        assert_eq!(ailing(&found), ["persistence", "saving"]);
    });
}

#[test]
fn a_replica_is_wrong_and_names_its_master() {
    if_possible(async {
        // Otherwise it would wait for more of them to come.
        let (master, replica) = (good_but(&["--repl-diskless-sync-delay", "0"]), good_but(&[]));
        let _: String = replica.run(&format!("REPLICAOF 127.0.0.1 {}", master.port));
        let linked = || replica.run::<String>("INFO replication").contains("master_link_status:up");
        until("the replica is in step", linked).await;
        let found = examine(&replica.url()).await;
        let remark = told(&found, "role", Wrong, &["it is a replica"]);
        assert_eq!(remark.change.as_deref(), Some(&*format!("use its master: {}", master.url())));
        let remark = told(&found, "locking", Wrong, &["READONLY"]);
        assert_eq!(remark.change.as_deref(), Some("see role"));
        assert_eq!(ailing(&found), ["role", "locking"]);

        let found = examine(&master.url()).await;
        told(&found, "replication", Risky, &["1 replica,", "min-replicas-to-write is 0"]);
        assert_eq!(ailing(&found), ["replication"]);
        let _: String = master.run("CONFIG SET min-replicas-to-write 1");
        assert_eq!(ailing(&examine(&master.url()).await), Vec::<&str>::new());
        let _: String = master.run("CONFIG SET min-replicas-to-write 2");
        let found = examine(&master.url()).await;
        told(&found, "replication", Wrong, &["1 good replica,", "is 2"]);
        told(&found, "locking", Wrong, &["NOREPLICAS"]);
        assert_eq!(ailing(&found), ["replication", "locking"]);
    });
}

#[test]
fn a_node_of_a_cluster_is_wrong() {
    if_possible(async {
        let server = good_but(&["--cluster-enabled", "yes"]);
        told(&examine(&server.url()).await, "mode", Wrong, &["cluster"]);
    });
}

#[test]
fn a_server_short_of_memory_is_risky_and_one_without_any_is_wrong() {
    if_possible(async {
        let server = good_but(&[]);
        let _: String = server.run("DEBUG POPULATE 20000 filler 1024");
        let used = || {
            let info: String = server.run("INFO memory");
            let line = info.lines().find_map(|line| line.trim().strip_prefix("used_memory:")).unwrap().to_owned();
            line.parse::<u64>().unwrap()
        };
        let _: String = server.run(&format!("CONFIG SET maxmemory {}", used() * 100 / 90));
        let found = examine(&server.url()).await;
        told(&found, "memory", Risky, &["% of maxmemory"]);
        assert_eq!(ailing(&found), ["memory"]);
        let _: String = server.run(&format!("CONFIG SET maxmemory {}", used() / 2));
        let found = examine(&server.url()).await;
        let remark = told(&found, "memory", Wrong, &["% of maxmemory"]);
        told(&found, "locking", Wrong, &["OOM"]);
        let _: String = server.run(remark.change.as_ref().unwrap());
        assert_eq!(ailing(&examine(&server.url()).await), Vec::<&str>::new());
    });
}

#[test]
fn a_server_that_cuts_quiet_connections_is_risky() {
    if_possible(async {
        let server = good_but(&["--timeout", "5"]);
        let found = examine(&server.url()).await;
        let remark = told(&found, "timeout", Risky, &["5 s"]);
        let _: String = server.run(remark.change.as_ref().unwrap());
        assert_eq!(ailing(&found), ["timeout"]);
        assert_eq!(ailing(&examine(&server.url()).await), Vec::<&str>::new());
    });
}

#[test]
fn a_small_buffer_for_news_and_few_connections_are_told() {
    if_possible(async {
        let server = good_but(&["--client-output-buffer-limit", "pubsub", "64kb", "16kb", "60"]);
        let found = examine(&server.url()).await;
        told(&found, "news-buffer", Risky, &["64.0 kB at once"]);
        assert_eq!(ailing(&found), ["news-buffer"]);
        let crowded = good_but(&["--maxclients", "4"]);
        let _others = [crowded.connection(), crowded.connection()];
        told(&examine(&crowded.url()).await, "connections", Wrong, &["of 4 are open"]);
    });
}

#[test]
fn settings_that_are_hidden_are_unknown_and_not_wrong() {
    if_possible(async {
        let server = Server::with(&[GOOD, &["--rename-command", "CONFIG", "hidden"]].concat());
        let found = examine(&server.url()).await;
        assert_eq!(ailing(&found), ["login", "timeout", "news-buffer"], "{found:#?}");
        assert_eq!(found.count(Wrong), 0, "{found:#?}");
        let change = found.about("timeout").unwrap().change.as_deref().unwrap();
        assert!(
            change.contains("redis.conf") && !change.contains("ACL"),
            "no rule brings a renamed command back: {change}"
        );
    });
}
