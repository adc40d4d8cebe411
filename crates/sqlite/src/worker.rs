//! The thread of a lane: takes jobs in order, as many calls at once as are waiting, and answers when they are committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use bandog_core::holder::InboxId;
use bandog_core::op::{Body, Reply, Verdict};
use bandog_core::store::{Call, Connection, Listing, Outcome, Page, Pulse, Push, StoreError};
use tokio::sync::oneshot;

use crate::bell;
use crate::error;
use crate::link::Link;
use crate::list;
use crate::schema;
use crate::state::State;
use crate::store::Shared;
use crate::turn::{self, Failure, Taken};

/// Calls in one transaction: enough to share its cost, few enough that others get their turn soon.
const GROUP: usize = 256;

/// Something to do, and whom to tell.
pub(crate) enum Job {
    Apply(Vec<Call>),
    List(Listing, oneshot::Sender<Result<Page, StoreError>>),
    /// Makes sure that news from other processes is heard.
    Listen(oneshot::Sender<Result<(), StoreError>>),
    /// Finds out whether the file, or the watcher, is there.
    Probe(Connection, oneshot::Sender<Result<Pulse, StoreError>>),
}

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Option<Link>,
    /// How many connections were opened on this lane.
    pub(crate) opened: Arc<AtomicU64>,
}

impl Worker {
    /// Works until nobody can send any more; what was sent by then is finished first.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        let mut next = jobs.recv().ok();
        while let Some(job) = next.take() {
            match job {
                Job::Apply(first) => next = self.apply_waiting(first, jobs),
                Job::List(query, answer) => drop(answer.send(self.list(&query))),
                Job::Listen(answer) => drop(answer.send(self.shared.watch())),
                Job::Probe(connection, answer) => drop(answer.send(self.probe(connection))),
            }
            if let Some(link) = &self.link {
                link.tidy();
            }
            next = next.or_else(|| jobs.recv().ok());
        }
    }

    /// Applies these calls and those that wait behind them; gives back the first job of another sort.
    fn apply_waiting(&mut self, mut calls: Vec<Call>, jobs: &Receiver<Job>) -> Option<Job> {
        let mut other = None;
        while calls.len() < GROUP && other.is_none() {
            match jobs.try_recv() {
                Ok(Job::Apply(more)) => calls.extend(more),
                Ok(job) => other = Some(job),
                Err(_) => break,
            }
        }
        self.apply(calls);
        other
    }

    fn apply(&mut self, calls: Vec<Call>) {
        match self.take_turn(&calls) {
            Ok(taken) => {
                if taken.replies.iter().flatten().any(queues) {
                    self.shared.hurry();
                }
                self.tell(taken.news, &taken.others);
                calls.into_iter().zip(taken.replies).for_each(|(call, reply)| call.reply.send(reply));
            }
            Err(error) => calls.into_iter().for_each(|call| call.reply.send(Err(error.clone()))),
        }
    }

    fn take_turn(&mut self, calls: &[Call]) -> Result<Taken, StoreError> {
        let shared = Arc::clone(&self.shared);
        let boot = shared.host.boot().map_err(error::no_boot)?;
        let link = self.link()?;
        match turn::take(link, &shared, boot, calls) {
            // A grant in a file that was removed meanwhile is worth nothing.
            Ok(_) if !link.is_current() => Err(error::replaced(&shared.place)),
            Ok(taken) => Ok(taken),
            Err(Failure::Format(number)) => Err(schema::unreadable(&shared.place, number)),
            Err(Failure::Kernel) => Err(error::another_kernel(&shared.place)),
            Err(Failure::Sql { outcome, error }) => {
                self.give_up(&error);
                Err(error::explain(&shared.place, outcome, error))
            }
        }
    }

    // The bell first: who hears it has the longer way.
    fn tell(&self, news: Vec<(InboxId, Push)>, others: &[InboxId]) {
        if !others.is_empty() {
            bell::ring(&self.shared.place, others);
        }
        for (inbox, push) in news {
            self.shared.inboxes.deliver(inbox, push);
        }
    }

    fn list(&mut self, query: &Listing) -> Result<Page, StoreError> {
        let shared = Arc::clone(&self.shared);
        list::page(&mut self.link()?.connection, &shared, query)
    }

    fn probe(&mut self, connection: Connection) -> Result<Pulse, StoreError> {
        if connection == Connection::News {
            return self.shared.is_watched();
        }
        let place = Arc::clone(&self.shared.place);
        let read = State::load(&self.link()?.connection);
        match read {
            Ok(_) => Ok(Pulse { opened: self.opened.load(Ordering::Relaxed) }),
            Err(failure) => {
                self.give_up(&failure);
                Err(error::explain(&place, Outcome::NotExecuted, failure))
            }
        }
    }

    /// Closes a connection that failed.
    fn give_up(&mut self, failure: &rusqlite::Error) {
        // One that is not current is kept until it is left in order.
        if !error::is_busy(failure) && self.link.as_ref().is_some_and(Link::is_current) {
            self.link = None;
        }
    }

    /// The connection, opened or opened again if need be.
    fn link(&mut self) -> Result<&mut Link, StoreError> {
        let link = match self.link.take() {
            Some(link) if link.is_current() => link,
            Some(link) => {
                let left = self.part(&link);
                // Closed after that: the system may give the number of a closed file to the one that another process makes now. And kept
                // if it failed: who begins anew without having left could go on with half a database.
                if let Err(error) = left {
                    self.link = Some(link);
                    return Err(error);
                }
                drop(link);
                self.open()?
            }
            None => self.open()?,
        };
        Ok(self.link.insert(link))
    }

    fn open(&mut self) -> Result<Link, StoreError> {
        let link = Link::open(&self.shared.place)?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(link)
    }

    /// Leaves a file that was removed under us. Its last words are the stamps that were minted in it.
    fn part(&self, link: &Link) -> Result<(), StoreError> {
        if let Ok(state) = State::load(&link.connection) {
            self.shared.raise_floor(state.highest.max(state.reserved));
        }
        let place = &self.shared.place;
        place.leave(link.files()).map_err(|error| error::uncreated(place, error))
    }
}

/// Whether somebody waits by this answer.
fn queues(reply: &Reply) -> bool {
    let verdict = match &reply.body {
        Body::Verdict(verdict) => Some(verdict),
        Body::Release(release) => release.again.as_ref(),
        _ => None,
    };
    matches!(verdict, Some(Verdict::Queued(_)))
}
