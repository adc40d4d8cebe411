//! The task that hears news from other processes and brings it to the inboxes of this one: one connection for all handles, which listens on a
//! channel for each inbox. Started at the first `listen`, ended with the last handle.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bandog_core::holder::InboxId;
use bandog_core::store::{Pulse, StoreError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::error::{self, Step};
use crate::message;
use crate::queue::{Shared, State, no_runtime};
use crate::rows;
use crate::session::{Heard, Session};

/// Between two tries at a server that cannot be reached: doubled from the first to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

#[derive(Debug, Default)]
pub(crate) struct Listener {
    pub(crate) state: Arc<State>,
    asked: Mutex<Option<UnboundedSender<Asked>>>,
}

/// What a listener is asked for.
enum Asked {
    /// To hear for all inboxes that there are; answered when nothing can be missed.
    Listen(oneshot::Sender<Result<(), StoreError>>),
    Probe(oneshot::Sender<Result<Pulse, StoreError>>),
}

impl Listener {
    /// Asks at once; ready when nothing can be missed any more.
    pub(crate) fn listen(&self, shared: &Arc<Shared>) -> impl Future<Output = Result<(), StoreError>> + use<> {
        let (answer, answered) = oneshot::channel();
        let asked = self.ask(shared, Asked::Listen(answer));
        async move {
            asked?;
            answered.await.map_err(|_| gone())?
        }
    }

    pub(crate) fn probe(&self, shared: &Arc<Shared>) -> impl Future<Output = Result<Pulse, StoreError>> + use<> {
        let (answer, answered) = oneshot::channel();
        let asked = self.ask(shared, Asked::Probe(answer));
        async move {
            asked?;
            answered.await.map_err(|_| gone())?
        }
    }

    fn ask(&self, shared: &Arc<Shared>, asked: Asked) -> Result<(), StoreError> {
        let mut sender = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &*sender {
            Some(sender) => match sender.send(asked) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0,
            },
            None => asked,
        };
        let runtime = Handle::try_current().map_err(|_| no_runtime())?;
        let (fresh, receiver) = unbounded_channel();
        let ear = Ear {
            shared: Arc::clone(shared),
            state: Arc::clone(&self.state),
            asked: receiver,
            heard: BTreeSet::new(),
            waiting: Vec::new(),
        };
        runtime.spawn(ear.run());
        drop(fresh.send(asked));
        *sender = Some(fresh);
        Ok(())
    }
}

fn gone() -> StoreError {
    StoreError::unknown("the task that listens for news has ended")
}

struct Ear {
    shared: Arc<Shared>,
    state: Arc<State>,
    asked: UnboundedReceiver<Asked>,
    /// The inboxes that the connection listens for.
    heard: BTreeSet<InboxId>,
    /// Asked for while there was no connection.
    waiting: Vec<Asked>,
}

/// Why a connection is no longer listened on.
enum End {
    Broken,
    /// The last handle is gone.
    Closed,
}

impl Ear {
    async fn run(mut self) {
        let mut pause = PAUSES[0];
        loop {
            match Session::open(&self.shared.config).await {
                Ok((session, news)) => {
                    pause = PAUSES[0];
                    let end = self.serve(&session, news).await;
                    self.state.forget();
                    self.heard.clear();
                    self.shared.inboxes.connected(false);
                    if matches!(end, End::Closed) {
                        return;
                    }
                }
                Err(error) => {
                    self.refuse(&error);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSES[1]),
                        asked = self.asked.recv() => match asked {
                            Some(asked) => self.waiting.push(asked),
                            None => return,
                        },
                    }
                }
            }
        }
    }

    fn refuse(&mut self, error: &StoreError) {
        for asked in self.waiting.drain(..) {
            match asked {
                Asked::Listen(answer) => drop(answer.send(Err(error.clone()))),
                Asked::Probe(answer) => drop(answer.send(Err(error.clone()))),
            }
        }
    }

    async fn serve(&mut self, session: &Session, mut news: Heard) -> End {
        self.state.opened(session);
        if self.listen(session).await.is_err() {
            return End::Broken;
        }
        // Anything may have been missed before.
        self.shared.inboxes.connected(true);
        for asked in std::mem::take(&mut self.waiting) {
            if self.answer(session, asked).await.is_err() {
                return End::Broken;
            }
        }
        loop {
            tokio::select! {
                heard = news.recv() => match heard {
                    Some(heard) => self.deliver(heard.channel(), heard.payload()),
                    None => return End::Broken,
                },
                asked = self.asked.recv() => match asked {
                    Some(asked) => {
                        if self.answer(session, asked).await.is_err() {
                            return End::Broken;
                        }
                    }
                    None => return End::Closed,
                },
                () = session.dead.notified() => return End::Broken,
            }
        }
    }

    fn deliver(&self, channel: &str, payload: &str) {
        if let (Some(inbox), Some(push)) = (message::inbox(channel), message::read(payload)) {
            self.shared.inboxes.deliver(inbox, push);
        }
    }

    async fn answer(&mut self, session: &Session, asked: Asked) -> Result<(), StoreError> {
        match asked {
            Asked::Listen(answer) => {
                let done = self.listen(session).await;
                drop(answer.send(done.clone()));
                done
            }
            Asked::Probe(answer) => {
                let asked = async {
                    let now = rows::now(&session.client, session.run).await;
                    now.map_err(|error| error::explain(Step::Reading, &error))
                };
                let done = until_dead(session, asked).await;
                let opened = self.state.opened.load(Ordering::Relaxed);
                drop(answer.send(done.clone().map(|_| Pulse { opened })));
                done.map(drop)
            }
        }
    }

    /// Listens for all inboxes that somebody reads, and for no other.
    async fn listen(&mut self, session: &Session) -> Result<(), StoreError> {
        let wanted: BTreeSet<InboxId> = self.shared.inboxes.ids().into_iter().collect();
        let more = wanted.difference(&self.heard).map(|inbox| format!("LISTEN {};", message::channel(*inbox)));
        let fewer = self.heard.difference(&wanted).map(|inbox| format!("UNLISTEN {};", message::channel(*inbox)));
        let sql: String = more.chain(fewer).collect();
        let asked = async {
            let done = session.client.batch_execute(&sql).await;
            done.map_err(|error| error::explain(Step::Reading, &error))
        };
        until_dead(session, asked).await?;
        self.heard = wanted;
        Ok(())
    }
}

/// The answer, unless somebody takes the connection for dead meanwhile.
async fn until_dead<T>(session: &Session, asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tokio::select! {
        done = asked => done,
        () = session.dead.notified() => Err(error::abandoned()),
    }
}
