//! The client's inbox: what the store delivers goes to the machine of its lock, and that it went silent to all of them.

use std::sync::{Arc, Weak};
use std::task::Poll;

use bandog_core::op::News;
use bandog_core::store::{Inbox, Push};

use super::calls::poll_once;
use super::{Driver, lock, shield};
use crate::error::ErrorKind;
use crate::signals::{Link, Phase};
use crate::sync::atomic::Ordering;

impl Driver {
    pub(super) fn listen(self: &Arc<Self>) {
        let receiver: Weak<dyn Inbox> = Arc::downgrade(&(Arc::clone(&self.mailbox) as Arc<dyn Inbox>));
        let mut answer = self.store.listen(self.client.inbox(), receiver);
        let polled = if self.may_poll() { poll_once(&mut answer) } else { Poll::Pending };
        match polled {
            Poll::Ready(result) => self.mailbox.connected(result.is_ok()),
            Poll::Pending => {
                let mailbox = Arc::clone(&self.mailbox);
                self.keeper.spawn(async move { mailbox.connected(answer.await.is_ok()) });
            }
        }
    }
}

/// Where the store delivers news for this client.
pub(super) struct Mailbox(pub(super) Weak<Driver>);

impl Inbox for Mailbox {
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
