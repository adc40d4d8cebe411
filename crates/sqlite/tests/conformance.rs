//! The SQLite store keeps every promise of the store contract: on clocks moved by hand, on the machine's own, and when all news takes the way
//! of other processes.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::sync::{Arc, Weak};

use bandog_conformance::{Bench, Terms};
use bandog_core::holder::InboxId;
use bandog_core::ledger::Limits;
use bandog_core::store::{Answer, Call, Capabilities, Connection, Listing, Page, Pulse, Receiver, Store};
use bandog_core::time::LeaseTime;
use bandog_sqlite::{Settings, SqliteStore, Waking};
use common::{Asleep, ByHand, Directory, Machine};

fn limits() -> Limits {
    Limits { waiters: 50, sharers: 20, ..Limits::default() }
}

fn terms(terms: Terms) -> Terms {
    Terms { waiters: Some(limits().waiters), sharers: Some(limits().sharers), ..terms }
}

async fn by_hand() -> Bench {
    let (directory, machine) = (Directory::new(), Machine::new());
    let settings = Settings { limits: limits(), ..machine.settings() };
    let store = SqliteStore::with(directory.file(), settings).unwrap();
    Bench::new(Arc::new(store), Arc::new(ByHand(machine)), terms(Terms::VIRTUAL)).keeping(directory)
}

async fn on_the_clock() -> Bench {
    let directory = Directory::new();
    let store = SqliteStore::with(directory.file(), Settings { limits: limits(), ..Settings::default() }).unwrap();
    Bench::new(Arc::new(store), Arc::new(Asleep), terms(Terms::REAL)).keeping(directory)
}

/// Speaks through one handle and listens at another, which share nothing but the file: all news goes through it.
#[derive(Debug)]
struct Apart {
    mouth: Arc<dyn Store>,
    ear: SqliteStore,
}

impl Apart {
    fn bench(waking: Waking) -> Bench {
        let directory = Directory::new();
        let open = || SqliteStore::with(directory.file(), Settings { limits: limits(), waking, ..Settings::default() });
        let store = Self { mouth: Arc::new(open().unwrap()), ear: open().unwrap() };
        Bench::new(Arc::new(store), Arc::new(Asleep), terms(Terms::REAL)).keeping(directory)
    }
}

async fn by_bell() -> Bench {
    Apart::bench(Waking::Bell)
}

async fn by_polling() -> Bench {
    Apart::bench(Waking::Poll)
}

impl std::fmt::Display for Apart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "apart({})", self.mouth)
    }
}

impl Store for Apart {
    fn capabilities(&self) -> Capabilities {
        self.mouth.capabilities()
    }
    fn time(&self) -> LeaseTime {
        self.mouth.time()
    }
    fn submit(&self, calls: Vec<Call>) {
        self.mouth.submit(calls);
    }

    fn sends_at_once(&self) -> bool {
        self.mouth.sends_at_once()
    }

    fn list(&self, query: Listing) -> Answer<Page> {
        self.mouth.list(query)
    }
    fn listen(&self, inbox: InboxId, receiver: Weak<dyn Receiver>) -> Answer<()> {
        self.ear.listen(inbox, receiver)
    }
    fn connection(&self) -> Arc<dyn Store> {
        Arc::new(Self { mouth: self.mouth.connection(), ear: self.ear.clone() })
    }
    fn probe(&self, connection: Connection) -> Answer<Pulse> {
        match connection {
            Connection::Calls => self.mouth.probe(connection),
            Connection::News => self.ear.probe(connection),
        }
    }

    fn is_open(&self, _: Connection) -> bool {
        true
    }
}

mod hand {
    use super::by_hand;
    bandog_conformance::suite!(by_hand);
}

mod clock {
    use super::on_the_clock;
    bandog_conformance::suite!(on_the_clock);
}

mod bell {
    use super::by_bell;
    bandog_conformance::suite!(by_bell);
}

mod polling {
    use super::by_polling;
    bandog_conformance::suite!(by_polling);
}
