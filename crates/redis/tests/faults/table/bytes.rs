//! The reply of every script ends after each of its bytes: cut, it is an error of unknown outcome at once; silent, the connection is
//! left by the next probe. Either way the same request, sent again, is answered.

use super::*;
use bandog_rig::End as Ending;

/// A caller's patience with a silent connection; probes leave none sooner than after 100 ms.
const PATIENCE: std::time::Duration = ms(150);

/// A store behind a proxy of its own, on a server that others use too.
struct Lane {
    bench: Bench,
    through: RedisStore,
}

impl Lane {
    async fn on(server: &Arc<Server>) -> Self {
        let proxy = Proxy::of(server).await;
        let through = store(&proxy.url()).await;
        let bench = Bench { beside: store(&server.url()).await, proxy, server: Arc::clone(server) };
        Self { bench, through }
    }

    /// For bundles a new one: a connection on which locks were contended ties nothing for a while.
    async fn through(&self, script: Script) -> RedisStore {
        if script == Script::Bundle { store(&self.bench.proxy.url()).await } else { self.through.clone() }
    }

    /// Asks once without a fault: how long the script's reply is.
    async fn length(&self, script: Script, number: usize) -> usize {
        let name = LockName::new(format!("{}-{number}-whole", script.word())).unwrap();
        let scene = scenes(script, &self.bench.beside).swap_remove(number);
        self.bench.enter(&name, &scene).await;
        self.bench.ask(&self.through(script).await, &name, &scene).await.unwrap();
        let replies = self.bench.proxy.replies();
        replies.iter().rfind(|(asked, _)| asked == script.word()).unwrap().1
    }

    /// Asks while the reply ends after so many bytes, and again.
    async fn ends_after(&self, script: Script, number: usize, bytes: usize, how: Ending) {
        let context = format!("{}-{number}: {how:?} after {bytes} bytes", script.word());
        let name = LockName::new(format!("{}-{number}-{how:?}-{bytes}", script.word())).unwrap();
        let scene = scenes(script, &self.bench.beside).swap_remove(number);
        self.bench.enter(&name, &scene).await;
        let through = self.through(script).await;
        let hit = self.bench.proxy.plan(script.word(), Fault::EndReply(bytes, how));
        let asked = tokio::time::timeout(PATIENCE, self.bench.ask(&through, &name, &scene));
        match (how, asked.await) {
            (Ending::Cut, Ok(Err(error))) => assert_eq!(error.outcome, Outcome::Unknown, "{context}: {error}"),
            (Ending::Silence, Err(_)) => {
                let probed = tokio::time::timeout(PATIENCE, through.probe(Connection::Calls)).await;
                assert!(probed.is_err(), "{context}: {probed:?}");
            }
            (_, asked) => panic!("{context}: {asked:?}"),
        }
        hit.await.unwrap();
        soon(&context, self.bench.ask(&through, &name, &scene)).await.unwrap();
    }
}

#[test]
fn every_script_whose_reply_is_cut_after_any_byte_is_answered_when_asked_again() {
    on_one_thread(async |server| {
        let lane = Lane::on(&server).await;
        for script in Script::ALL {
            for number in 0..scenes(script, &lane.bench.beside).len() {
                for bytes in 0..lane.length(script, number).await {
                    lane.ends_after(script, number, bytes, Ending::Cut).await;
                }
            }
        }
    });
}

#[test]
fn every_script_whose_reply_goes_silent_is_answered_when_asked_again() {
    on_one_thread(async |server| {
        let lane = Lane::on(&server).await;
        let mut all = Vec::new();
        for script in Script::ALL {
            for number in 0..scenes(script, &lane.bench.beside).len() {
                let length = lane.length(script, number).await;
                all.push((script, number, length));
            }
        }
        let all = all.into_iter().map(async |(script, number, length)| {
            let lane = Lane::on(&server).await;
            for bytes in [0, 1, length / 2, length - 1] {
                lane.ends_after(script, number, bytes, Ending::Silence).await;
            }
        });
        together(all.collect()).await;
    });
}

/// All of them at one time, on this thread.
async fn together<F: Future<Output = ()>>(all: Vec<F>) {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
    std::future::poll_fn(move |context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
