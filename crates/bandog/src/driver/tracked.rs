//! Futures of the threads that a virtual clock waits for: who is woken is busy from that moment on, whether or not it runs yet.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use bandog_core::time::Moment;
use tokio::sync::Notify;

use super::lock;
use crate::clock::Worker;
use crate::sync::Mutex;

/// Wakes the task and then the thread's own loop, which lets the task run before it rests again.
struct Signal {
    worker: Worker,
    bell: Arc<Notify>,
    task: Mutex<Waker>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        lock(&self.task).wake_by_ref();
        self.worker.rouse();
        self.bell.notify_one();
    }
}

/// A task of a thread with a loop of its own: once woken it is waited for, like the thread itself.
pub(crate) async fn tracked(task: impl Future<Output = ()>, worker: Worker, bell: Arc<Notify>) {
    let signal = Arc::new(Signal { worker, bell, task: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(Arc::clone(&signal));
    let mut task = pin!(task);
    poll_fn(|cx| {
        lock(&signal.task).clone_from(cx.waker());
        task.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await;
}

/// Rouses the thread, then wakes it.
struct Alert {
    worker: Worker,
    thread: Waker,
}

impl Wake for Alert {
    fn wake(self: Arc<Self>) {
        self.worker.rouse();
        self.thread.wake_by_ref();
    }
}

/// All that a thread does: it rests whenever that waits, be it for time to pass, until it is woken.
pub(crate) async fn attended(life: impl Future<Output = ()>, worker: Worker) {
    let mut life = pin!(life);
    poll_fn(|cx| {
        let waker = Waker::from(Arc::new(Alert { worker: worker.clone(), thread: cx.waker().clone() }));
        worker.attend();
        let polled = life.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            // What it waits for has its waker. If one was used meanwhile, the thread is polled again.
            worker.rest(Moment::FAR);
        }
        polled
    })
    .await;
    worker.retire();
}
