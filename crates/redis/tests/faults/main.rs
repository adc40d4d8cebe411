//! Exactly one request or reply goes wrong, between the library and a real server. Tests are named after the fault schedules they play.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod apart;
mod contract;
mod ghosts;
mod index;
mod losses;
mod news;
mod openings;
mod probes;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::future::Future;
use std::sync::Arc;

use bandog::Locks;
use bandog_rig::Proxy;
use support::{Server, hasty, if_possible, locks};

/// A server, a proxy before it, a client behind the proxy, and a rival with a way of its own.
struct Stage {
    server: Arc<Server>,
    proxy: Proxy,
    ann: Locks,
    bob: Locks,
}

fn on_stage<F: Future<Output = ()>>(test: impl FnOnce(Stage) -> F) {
    if_possible(async {
        let server = Arc::new(Server::start());
        let proxy = Proxy::of(&server).await;
        let ann = hasty().unavailable_after(std::time::Duration::from_secs(8)).connect(&proxy.url()).await.unwrap();
        let bob = locks(&server.url()).await;
        test(Stage { server, proxy, ann, bob }).await;
    });
}

impl Stage {
    /// How many hold the lock and how many wait for it.
    async fn crowd(&self, name: &str) -> (usize, usize) {
        let seen = self.bob.inspect(name).await.unwrap();
        seen.map_or((0, 0), |info| (info.record.holders.len(), info.record.waiters.len()))
    }

    /// Looks until both listen.
    async fn listens(&self) {
        support::until("two listeners", || self.server.listeners().len() >= 2).await;
    }

    /// Looks until so many hold it and so many wait.
    async fn sees(&self, name: &str, crowd: (usize, usize)) {
        let looking = async {
            while self.crowd(name).await != crowd {
                tokio::time::sleep(support::ms(5)).await;
            }
        };
        support::soon(&format!("{name} with {crowd:?}"), looking).await;
    }
}
