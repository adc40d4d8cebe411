//! Tasks of the renewal thread under a virtual clock: once woken they are waited for, like the thread itself.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

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
