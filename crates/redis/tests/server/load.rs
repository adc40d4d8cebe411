//! Clients that take turns while somebody meddles with the server's scripts and connections: they do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bandog::{Locks, ReleaseError};
use bandog_redis::Script;

use crate::support::{Server, locks, ms, on_a_server, soon, until};

/// Clients that take turns until told to stop; the number of turns.
struct Load {
    stop: Arc<AtomicBool>,
    turns: Arc<AtomicUsize>,
    /// Releases that were not confirmed, and go on in the background.
    unconfirmed: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn begin(clients: &[Locks]) -> Self {
        let (stop, turns, unconfirmed): (Arc<AtomicBool>, Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let turn = |(number, locks): (usize, &Locks)| {
            let (locks, stop, turns) = (locks.clone(), Arc::clone(&stop), Arc::clone(&turns));
            let unconfirmed = Arc::clone(&unconfirmed);
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let guard = locks.mutex(format!("load:{}", number % 3)).fair().acquire().await.unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                    match guard.release().await {
                        Ok(()) => {}
                        Err(ReleaseError::Store { .. }) => {
                            unconfirmed.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        };
        let tasks = clients.iter().cycle().take(8).enumerate().map(turn).collect();
        Self { stop, turns, unconfirmed, tasks }
    }

    fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    /// Lets everybody finish, and says how many releases were not confirmed.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            soon("the last turn", task).await.unwrap();
        }
        self.unconfirmed.load(Ordering::Relaxed)
    }
}

#[test]
fn schedule_23_forgotten_scripts_are_no_trouble() {
    on_a_server(async |server| {
        let load = Load::begin(&[locks(&server.url()).await, locks(&server.unix_url()).await]);
        let mut connection = server.connection();
        for _ in 0..200 {
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
            tokio::time::sleep(ms(5)).await;
        }
        let turns = load.turns();
        assert!(turns > 100, "{turns}");
        assert_eq!(load.end().await, 0, "somebody saw that scripts were forgotten");
        // Else nothing was forgotten while it was needed.
        let whole: String = server.run("INFO commandstats");
        let count = |command: &str| {
            whole
                .split(&format!("cmdstat_{command}:calls="))
                .nth(1)
                .map(|rest| rest.split(',').next().unwrap().parse::<usize>().unwrap())
        };
        let (sent_whole, by_digest) = (count("eval").unwrap_or_default(), count("evalsha").unwrap_or_default());
        assert!(sent_whole > 50 && by_digest > sent_whole, "{sent_whole} whole, {by_digest} by digest");
    });
}

/// Makes the server forget all scripts.
fn forget(server: &Server) {
    let _: String = server.run("SCRIPT FLUSH");
}

/// Whether the server knows a script: after a flush, one that was sent whole since.
fn knows(server: &Server, script: Script) -> bool {
    let digest = redis::Script::new(script.text()).get_hash().to_owned();
    server.run::<Vec<bool>>(&format!("SCRIPT EXISTS {digest}")) == [true]
}

#[test]
fn whichever_script_is_forgotten_is_sent_whole() {
    on_a_server(async |server| {
        let (ours, theirs) = (locks(&server.url()).await, locks(&server.url()).await);
        // All connections are open: whoever opens one later teaches again.
        for locks in [&ours, &theirs] {
            let first = locks.mutex("first").acquire().await.unwrap();
            first.renew().await.unwrap();
            first.release().await.unwrap();
        }
        forget(&server);
        let sent_whole = |script: Script| {
            assert!(knows(&server, script), "{script:?}");
            forget(&server);
        };
        let read = ours.rwlock("doc").read().acquire().await.unwrap();
        sent_whole(Script::Acquire);
        read.renew().await.unwrap();
        sent_whole(Script::Renew);
        let write = read.upgrade().await.unwrap();
        sent_whole(Script::Upgrade);
        let read = write.downgrade().await.unwrap();
        sent_whole(Script::Downgrade);
        assert!(ours.inspect("doc").await.unwrap().is_some());
        sent_whole(Script::Inspect);
        assert_eq!(ours.list("*").await.unwrap().len(), 1);
        sent_whole(Script::Peek);
        let waiting = tokio::spawn(async move { theirs.rwlock("doc").write().acquire().await.unwrap() });
        until("a heartbeat, whole", || knows(&server, Script::Heartbeat)).await;
        forget(&server);
        let mut kept = Vec::new();
        for number in 0..8 {
            kept.push(ours.mutex(format!("kept:{number}")).acquire().await.unwrap());
        }
        forget(&server);
        until("renewals of many, whole", || knows(&server, Script::RenewAll)).await;
        assert!(read.is_held() && kept.iter().all(|guard| guard.is_held()));
        forget(&server);
        read.release().await.unwrap();
        sent_whole(Script::Release);
        let write = soon("the next", waiting).await.unwrap();
        ours.revoke("doc", "to see").now().await.unwrap().expect("a holder");
        sent_whole(Script::Revoke);
        soon("the loss", write.lost()).await;
    });
}

#[test]
fn cut_connections_are_no_trouble() {
    on_a_server(async |server| {
        let keeper = locks(&server.url()).await;
        let kept = keeper.mutex("kept").acquire().await.unwrap();
        let load = Load::begin(&[locks(&server.url()).await, locks(&server.unix_url()).await]);
        for round in 0..20 {
            let before = load.turns();
            until("somebody's turn between two cuts", || load.turns() > before + 20).await;
            server.cut(["bandog", "bandog-news"][round % 2]);
        }
        load.end().await;
        kept.renew().await.unwrap();
        kept.release().await.unwrap();
    });
}
