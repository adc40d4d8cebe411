//! The task of one connection: takes jobs in order, as many calls at once as are waiting, and answers when they are committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::name::LockName;
use bandog_core::op::News;
use bandog_core::store::{Call, Listing, Outcome, Page, Pulse, Push, StoreError, StoreErrorKind};
use bandog_core::time::{Moment, RunId};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio_postgres::types::{ToSql, Type};

use crate::clock;
use crate::error::{self, Step};
use crate::list;
use crate::message;
use crate::queue::{Shared, State};
use crate::rows;
use crate::session::Session;
use crate::turn::{self, Taken};

/// Calls in one transaction: enough to share its cost, few enough that others get their turn soon.
const GROUP: usize = 64;
/// Between two sweeps by one worker.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Something to do, and whom to tell.
pub(crate) enum Job {
    Apply(Vec<Call>),
    List(Listing, oneshot::Sender<Result<Page, StoreError>>),
    Probe(oneshot::Sender<Result<Pulse, StoreError>>),
}

/// News for inboxes of this process.
type Near = Vec<(InboxId, Push)>;
/// News for others: a channel and what to say on it, each once.
type Far = BTreeSet<(String, String)>;

pub(crate) struct Worker {
    shared: Arc<Shared>,
    state: Arc<State>,
    jobs: UnboundedReceiver<Job>,
    /// Taken out of the queue, but of another sort than what was gathered.
    next: Option<Job>,
    session: Option<Session>,
    swept: Moment,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        state: Arc<State>,
        jobs: UnboundedReceiver<Job>,
        session: Option<Session>,
    ) -> Self {
        Self { shared, state, jobs, next: None, session, swept: clock::now() }
    }

    /// Works until nobody can send any more; what was sent by then is finished first.
    pub(crate) async fn run(mut self) {
        loop {
            let job = match self.next.take() {
                Some(job) => job,
                None => match self.jobs.recv().await {
                    Some(job) => job,
                    None => return self.state.forget(),
                },
            };
            match job {
                Job::Apply(calls) => {
                    let calls = self.gather(calls);
                    self.apply(calls).await;
                }
                Job::List(query, answer) => drop(answer.send(self.list(&query).await)),
                Job::Probe(answer) => drop(answer.send(self.probe().await)),
            }
        }
    }

    fn gather(&mut self, mut calls: Vec<Call>) -> Vec<Call> {
        while calls.len() < GROUP {
            match self.jobs.try_recv() {
                Ok(Job::Apply(more)) => calls.extend(more),
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        calls
    }

    /// In one transaction; and where somebody else keeps one of the locks busy, lock by lock, so that the others go on.
    async fn apply(&mut self, calls: Vec<Call>) {
        let is_one = calls.iter().all(|call| call.name == calls[0].name);
        let Some((calls, error)) = self.apply_together(calls).await else { return };
        if is_one || error.kind != StoreErrorKind::Unready || error.outcome != Outcome::NotExecuted {
            return refuse(calls, &error);
        }
        let mut apart: BTreeMap<LockName, Vec<Call>> = BTreeMap::new();
        calls.into_iter().for_each(|call| apart.entry(call.name.clone()).or_default().push(call));
        for calls in apart.into_values() {
            if let Some((calls, error)) = self.apply_together(calls).await {
                refuse(calls, &error);
            }
        }
    }

    /// Applies and answers; gives back what failed, and why.
    async fn apply_together(&mut self, calls: Vec<Call>) -> Option<(Vec<Call>, StoreError)> {
        let Taken { replies, news, now } = match self.take_turn(&calls).await {
            Ok(taken) => taken,
            Err(error) => return Some((calls, error)),
        };
        self.shared.clock.set(now.lease);
        let (near, far) = self.addressed(news, now.run);
        let answered = async {
            calls.into_iter().zip(replies).for_each(|(call, reply)| call.reply.send(reply));
            near.into_iter().for_each(|(inbox, push)| self.shared.inboxes.deliver(inbox, push));
        };
        // Sent before anything is answered: who hears it has the longer way. A notice that is lost is told again.
        tokio::join!(biased; notify(self.session.as_ref(), &far), answered);
        None
    }

    async fn take_turn(&mut self, calls: &[Call]) -> Result<Taken, StoreError> {
        let sweep = clock::now().since(self.swept) >= SWEEP_EVERY;
        let shared = Arc::clone(&self.shared);
        let limits = &shared.config.limits;
        let taken = self.with(async |session| turn::take(session, &shared.rows, limits, calls, sweep).await).await;
        if sweep && taken.is_ok() {
            self.swept = clock::now();
        }
        taken
    }

    async fn list(&mut self, query: &Listing) -> Result<Page, StoreError> {
        let shared = Arc::clone(&self.shared);
        self.with(async |session| list::page(session, &shared.rows, query).await).await
    }

    async fn probe(&mut self) -> Result<Pulse, StoreError> {
        let shared = Arc::clone(&self.shared);
        let asked = self.with(async |session| {
            let now = rows::now(&session.client, session.run).await;
            now.map_err(|error| error::explain(Step::Reading, &error))
        });
        let now = asked.await?;
        shared.clock.set(now.lease);
        Ok(Pulse { opened: self.state.opened.load(Ordering::Relaxed) })
    }

    /// Does something on the connection, which is opened if need be, and left when it breaks or somebody takes it for dead.
    async fn with<T>(&mut self, work: impl AsyncFnOnce(&Session) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let session = match self.session.take().filter(Session::is_open) {
            Some(session) => session,
            None => {
                self.state.forget();
                let (session, _) = Session::open(&self.shared.config).await?;
                self.state.opened(&session);
                session
            }
        };
        let done = tokio::select! {
            done = work(&session) => done,
            () = session.dead.notified() => {
                self.state.forget();
                return Err(error::abandoned());
            }
        };
        // After a failover the same connection may lead to a server that only reads.
        let is_left = done.as_ref().is_err_and(|error| error.kind == StoreErrorKind::Unavailable);
        if is_left || !session.is_open() {
            self.state.forget();
        } else {
            self.session = Some(session);
        }
        done
    }

    /// Where news goes.
    fn addressed(&self, news: Vec<(InboxId, LockName, News)>, run: RunId) -> (Near, Far) {
        let (mut near, mut far) = (Vec::new(), BTreeSet::new());
        for (inbox, name, news) in news {
            if self.shared.inboxes.has(inbox) {
                near.push((inbox, Push { name, run, news }));
            } else if let Some(payload) = message::payload(run, &name, &news) {
                far.insert((message::channel(inbox), payload));
            }
        }
        (near, far)
    }
}

fn refuse(calls: Vec<Call>, error: &StoreError) {
    calls.into_iter().for_each(|call| call.reply.send(Err(error.clone())));
}

/// In a transaction of its own, which need not be on disk: inside the one before, commits of all databases would wait for each other.
async fn notify(session: Option<&Session>, far: &Far) {
    let Some(session) = session.filter(|_| !far.is_empty()) else { return };
    let (channels, payloads): (Vec<&str>, Vec<&str>) =
        far.iter().map(|(channel, payload)| (channel.as_str(), payload.as_str())).unzip();
    let sql = "SELECT pg_notify(channel, payload) FROM unnest($1, $2) AS news(channel, payload)";
    let client = &session.client;
    let said: [(&(dyn ToSql + Sync), Type); 2] = [(&channels, Type::TEXT_ARRAY), (&payloads, Type::TEXT_ARRAY)];
    let told = async {
        tokio::join!(
            biased;
            client.batch_execute("BEGIN; SET LOCAL synchronous_commit = off"),
            client.query_typed(sql, &said),
            client.batch_execute("COMMIT"),
        )
    };
    tokio::select! {
        _ = told => {}
        // It is still told to the next who asks.
        () = session.dead.notified() => session.dead.notify_one(),
    }
}
