//! Receives what the store delivers: answers and pushes go to the machine of their lock, the state of the inbox to all machines.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bandog_core::name::LockName;
use bandog_core::op::{News, Reply};
use bandog_core::store::{Push, Receiver, StoreError};

use super::{Driver, lock, shield};
use crate::error::ErrorKind;
use crate::signals::{Link, Phase};
use crate::sync::Handle;
use crate::sync::atomic::Ordering;

impl Driver {
    /// Begins to listen for pushes. Claims do not wait for it: heartbeats find the grants whose push was missed.
    pub(super) fn listen(self: &Arc<Self>) {
        let receiver: Weak<dyn Receiver> = Arc::downgrade(&self.receiver());
        let runtime = (!self.has_runtime()).then(|| self.renewal_thread.runtime());
        let (listens, begun) = {
            let _inside = runtime.as_ref().map(Handle::enter);
            let mut listens = self.store.listen(self.client.inbox(), receiver);
            // A store that needs no round trip listens already. Whoever polls next brings a real waker.
            let begun = listens.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            (listens, begun)
        };
        match begun {
            Poll::Ready(listening) => self.receiver.connected(listening.is_ok()),
            Poll::Pending => {
                let receiver = Arc::clone(&self.receiver);
                self.renewal_thread.spawn(async move { receiver.connected(listens.await.is_ok()) });
            }
        }
    }

    pub(super) fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::clone(&self.receiver) as Arc<dyn Receiver>
    }
}

pub(super) struct DriverReceiver(pub(super) Weak<Driver>);

impl Receiver for DriverReceiver {
    fn answered(&self, name: &LockName, id: u64, answer: Result<Reply, StoreError>) {
        let Some(driver) = self.0.upgrade() else { return };
        // A panic must not end the thread or the connection that brings the answers of others.
        let _ = shield::shield("an answer", || {
            // A cohort stays in the table as long as it has calls under way.
            if let Some(cohort) = driver.cohorts.get(&driver.key(name.clone())) {
                driver.answered(&cohort, id, answer);
            }
        });
    }

    fn deliver(&self, push: Push) {
        let Some(driver) = self.0.upgrade() else { return };
        let Push { name, run, news } = push;
        let stays = match &news {
            News::Granted { number, .. } if driver.client.ordinal(*number).is_none() => return,
            News::Granted { number, .. } if lock(&driver.detached).contains(number) => return,
            News::Revoked { number, .. } => lock(&driver.staying).get(number).cloned(),
            _ => None,
        };
        if let Some(stays) = stays {
            return stays.notify_one();
        }
        let name = driver.key(name);
        // For a lock without a cohort only a grant matters: the machine answers it with a release.
        if matches!(news, News::Granted { .. }) || driver.knows(&name) {
            driver.enter(&name, |now, machine| machine.handle_push(now, run, news.clone()));
        }
    }

    fn connected(&self, up: bool) {
        let Some(driver) = self.0.upgrade() else { return };
        driver.inbox_up.store(up, Ordering::Release);
        let again = up && driver.inbox_was_up.swap(true, Ordering::Relaxed);
        shield::shield("a listener", || {
            driver.signals.connection(Link::Inbox, up, None, u64::from(again));
            if !up {
                driver.signals.failed(ErrorKind::Unavailable, Phase::News);
            }
        });
        for cohort in driver.all_cohorts() {
            driver.with(&cohort, |now, machine| machine.handle_inbox(now, up));
        }
    }
}
