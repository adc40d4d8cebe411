//! Every script, lost at every place on its way and sent again: it takes effect once. Makes `losses.md` beside it.
//!
//! On the same connection the first try is given up while it, or its answer, is still on the way; the same bytes follow it there, and both
//! answers arrive. On a new connection the first try takes its connection with it.

mod bytes;
mod scene;
mod words;

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Op};
use bandog_core::store::Ask;
use bandog_core::store::{Connection, Listing, Outcome, Store, StoreError};
use bandog_core::token::Stamp;
use bandog_redis::{RedisStore, Script};
use bandog_rig::{Fault, Proxy};

use crate::support::{Server, calls, claim, client, ms, on_one_thread, soon, store, until};
use scene::{Company, Scene, scenes};

/// Where it is lost: the title, and the fault on the same connection and before a new one.
const LOSSES: [(&str, Fault, Fault); 4] = [
    ("request lost", Fault::HoldRequest, Fault::LoseRequest),
    ("request torn", Fault::SplitRequest, Fault::TearRequest),
    ("reply torn", Fault::SplitReply, Fault::TearReply),
    ("reply lost", Fault::HoldReply, Fault::LoseReply),
];

const HEAD: &str = "\
# Every script, lost and sent again

Made by `cargo test -p bandog-redis --test faults table` on a real server, which fails when it finds anything else than what stands here;
`BANDOG_WRITE_TABLES=yes` writes it anew. Each cell says how often the request arrived at the server, and what the second try was told. The
record is the same in every cell of a row as without a fault: the same holders with the same stamps, the same line. On the same connection
the first try is given up while it, or its answer, is on the way, and the same bytes follow it; the late answer to the first is not taken for
the second's. A bundle that comes again finds its work done, or its ids holding: it leaves them alone, and its two requests follow one by one.
";

#[test]
fn every_script_lost_anywhere_takes_effect_once() {
    // On one thread: no answer comes between two requests that are to wait together.
    on_one_thread(async |server| {
        let proxy = Proxy::of(&server).await;
        let bench = Bench { beside: store(&server.url()).await, proxy, server };
        let mut page = HEAD.to_owned() + "\n| script | asked for | without a fault | sent again on";
        page.extend(LOSSES.map(|(title, ..)| format!(" | {title}")));
        page += &format!(" |\n{}|\n", "|---".repeat(4 + LOSSES.len()));
        for script in Script::ALL {
            for number in 0..scenes(script, &bench.beside).len() {
                page += &bench.rows(script, number).await;
            }
        }
        compare(&page);
    });
}

fn compare(page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/table/losses.md");
    if std::env::var_os("BANDOG_WRITE_TABLES").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    for (at, (found, kept)) in page.lines().zip(kept.lines().chain(std::iter::repeat(""))).enumerate() {
        assert_eq!(found, kept, "line {} of losses.md", at + 1);
    }
    assert_eq!(page.lines().count(), kept.lines().count(), "losses.md has more lines than there are scenes");
}

struct Bench {
    proxy: Proxy,
    server: Arc<Server>,
    /// A store that looks. The one under test is made anew for each cell: what it has seen of others changes how it asks.
    beside: RedisStore,
}

/// What a try was told.
#[derive(Debug)]
struct Told {
    words: String,
    stamp: Option<Stamp>,
}

/// How a scene ended.
struct End {
    arrivals: usize,
    answer: String,
    record: String,
}

impl Bench {
    /// The rows of one scene: sent again on the same connection, and on a new one.
    async fn rows(&self, script: Script, number: usize) -> String {
        let label =
            |way: &str, place: usize| LockName::new(format!("{}-{number}-{way}-{place}", script.word())).unwrap();
        let scene = || scenes(script, &self.beside).swap_remove(number);
        let plain = self.undisturbed(&label("plain", 0), scene()).await;
        let mut rows = String::new();
        for way in ["same", "new"] {
            rows += &format!("| {} | {} | {} | {way}", script.word(), scene().title, plain.answer);
            for (place, (title, same, new)) in LOSSES.into_iter().enumerate() {
                let name = label(way, place);
                let end = match way {
                    "same" => self.behind(&name, scene(), script, same).await,
                    _ => self.anew(&name, scene(), script, new).await,
                };
                let context = format!("{}, {}, {title}, {way} connection", script.word(), scene().title);
                assert_eq!(end.record, plain.record, "{context}");
                rows += &format!(" | {}× {}", end.arrivals, end.answer);
            }
            rows += " |\n";
        }
        rows
    }

    async fn undisturbed(&self, name: &LockName, scene: Scene) -> End {
        self.enter(name, &scene).await;
        let through = store(&self.proxy.url()).await;
        let before = self.calls();
        let answer = self.ask(&through, name, &scene).await.unwrap();
        let arrivals = self.calls() - before;
        assert_eq!(arrivals, 1);
        self.end(name, arrivals, answer, None).await
    }

    /// The first try is held on its way, and the second is sent behind it.
    async fn behind(&self, name: &LockName, scene: Scene, script: Script, fault: Fault) -> End {
        self.enter(name, &scene).await;
        let through = store(&self.proxy.url()).await;
        let (before, opened) = (self.calls(), self.proxy.connections());
        let hit = self.proxy.plan(script.word(), fault);
        let executed = matches!(fault, Fault::HoldReply | Fault::SplitReply);
        {
            let first = pin!(self.ask(&through, name, &scene));
            tokio::select! { _ = first => panic!("it was to be held"), hit = hit => hit.unwrap() }
            // It is given up here.
        }
        if executed {
            until("the first try", || self.calls() == before + 1).await;
        }
        let once = self.look(name, true).await;
        let seen = self.calls();
        let mut second = pin!(self.ask(&through, name, &scene));
        // With the first poll it is queued behind the first.
        assert!(poll_once(second.as_mut()).await.is_none(), "it overtook what is held");
        // A listing asks for names first, and their answer is behind what is held.
        if executed && scene.op.is_some() {
            until("the second try", || self.calls() == seen + 1).await;
        }
        self.proxy.let_go();
        let answer = soon("an answer", second).await.unwrap();
        let arrivals = self.calls() - before - 1;
        assert_eq!(self.proxy.connections(), opened, "{fault:?}: not the same connection");
        self.end(name, arrivals, answer, executed.then_some(once)).await
    }

    /// The first try takes its connection with it.
    async fn anew(&self, name: &LockName, scene: Scene, script: Script, fault: Fault) -> End {
        self.enter(name, &scene).await;
        let through = store(&self.proxy.url()).await;
        let (before, opened) = (self.calls(), self.proxy.connections());
        drop(self.proxy.plan(script.word(), fault));
        let error = soon("a cut", self.ask(&through, name, &scene)).await.unwrap_err();
        assert_eq!(error.outcome, Outcome::Unknown, "{error}");
        let once = self.look(name, true).await;
        let answer = soon("an answer", self.ask(&through, name, &scene)).await.unwrap();
        let arrivals = self.calls() - before - 1;
        assert_eq!(self.proxy.connections(), opened + 1, "{fault:?}: not a new connection");
        let executed = matches!(fault, Fault::LoseReply | Fault::TearReply);
        self.end(name, arrivals, answer, executed.then_some(once)).await
    }

    /// Where the first try was executed, the second changed nothing: not even a stamp.
    async fn end(&self, name: &LockName, arrivals: usize, answer: Told, once: Option<String>) -> End {
        let record = self.look(name, true).await;
        if let Some(stamp) = answer.stamp {
            assert!(record.contains(&format!("{stamp:?}")), "{name}: told {stamp:?}, kept {record}");
        }
        if let Some(once) = once {
            assert_eq!(record, once, "{name}: the second try changed something");
        }
        End { arrivals, answer: answer.words, record: self.look(name, false).await }
    }

    async fn enter(&self, name: &LockName, scene: &Scene) {
        for op in &scene.before {
            self.beside.apply(name.clone(), op.clone()).await.unwrap();
        }
    }

    async fn ask(&self, through: &RedisStore, name: &LockName, scene: &Scene) -> Result<Told, StoreError> {
        let Some(op) = scene.op.clone() else {
            let query = Listing { pattern: Some(name.to_string()), ..Listing::default() };
            return through
                .list(query)
                .await
                .map(|page| Told { words: format!("{} listed", page.rows.len()), stamp: None });
        };
        let body = match scene.company {
            Company::Alone => through.apply(name.clone(), op).await?.body,
            Company::Twice => through.batch(vec![(name.clone(), op); 2]).await.swap_remove(0)?.body,
            Company::Another => {
                let other = LockName::new(format!("{name}-other")).unwrap();
                let Op::Acquire(claim) = claim(through, &client(3), ms(20_000)) else { unreachable!() };
                let claim = Op::Acquire(Claim { fair: false, ..claim });
                if !through.is_open(Connection::Calls) {
                    through.probe(Connection::Calls).await?;
                }
                // Something must be under way, or the first is written at once.
                let _under_way = poll_once(through.probe(Connection::Calls)).await;
                let (asked, _) = tokio::join!(through.apply(name.clone(), op), through.apply(other.clone(), claim));
                asked?.body
            }
        };
        Ok(Told { words: words::answer(&body), stamp: words::stamp(&body) })
    }

    async fn look(&self, name: &LockName, with_stamps: bool) -> String {
        match self.beside.apply(name.clone(), Op::Inspect).await.unwrap().body {
            Body::Record(Some(view)) => words::record(&view, with_stamps),
            Body::Record(None) => "no record".to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// How many scripts the server has run.
    fn calls(&self) -> usize {
        calls(&self.server, "evalsha")
    }
}

async fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! { biased; done = future => Some(done), () = std::future::ready(()) => None }
}
