//! Where the store delivers for this client: answers and pushes go to the machine of their lock, and that pushes stop or go on to all of
//! them.

use std::sync::{Arc, Weak};

use bandog_core::name::LockName;
use bandog_core::op::{News, Reply};
use bandog_core::store::{Push, Receiver, StoreError};

use super::{Driver, lock, shield};
use crate::error::ErrorKind;
use crate::signals::{Link, Phase};
use crate::sync::Handle;
use crate::sync::atomic::Ordering;

impl Driver {
    /// Begins to listen. Claims do not wait for it: what they miss, heartbeats find.
    pub(super) fn listen(self: &Arc<Self>) {
        let receiver: Weak<dyn Receiver> = Arc::downgrade(&self.mailbox());
        let runtime = (!self.has_runtime()).then(|| self.keeper.runtime());
        let inside = runtime.as_ref().map(Handle::enter);
        let listens = self.store.listen(self.client.inbox(), receiver);
        drop(inside);
        if self.capabilities.in_process {
            return self.mailbox.connected(true);
        }
        let mailbox = Arc::clone(&self.mailbox);
        self.keeper.spawn(async move { mailbox.connected(listens.await.is_ok()) });
    }

    pub(super) fn mailbox(&self) -> Arc<dyn Receiver> {
        Arc::clone(&self.mailbox) as Arc<dyn Receiver>
    }
}

pub(super) struct Mailbox(pub(super) Weak<Driver>);

impl Receiver for Mailbox {
    fn answered(&self, name: &LockName, id: u64, answer: Result<Reply, StoreError>) {
        let Some(driver) = self.0.upgrade() else { return };
        // A cohort stays in the table as long as it has calls under way.
        if let Some(cohort) = driver.cohorts.get(&driver.key(name.clone())) {
            driver.answered(&cohort, id, answer);
        }
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
        // Only a grant matters to a lock that nobody here knows: the machine answers it with a release.
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
