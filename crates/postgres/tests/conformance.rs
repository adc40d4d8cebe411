//! The PostgreSQL store keeps every promise of the store contract.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::sync::Arc;

use bandog_conformance::Bench;
use bandog_rig::Postgres;
use common::{Asleep, store, terms};

async fn over_tcp() -> Bench {
    let store = store(&Postgres::shared().url()).await;
    Bench::new(Arc::new(store), Arc::new(Asleep), terms())
}

async fn as_behind_a_pooler() -> Bench {
    let store = store(&format!("{}&prepare=false", Postgres::shared().url())).await;
    Bench::new(Arc::new(store), Arc::new(Asleep), terms())
}

mod unprepared {
    use super::as_behind_a_pooler;
    bandog_conformance::suite!(as_behind_a_pooler, on = crate::common::if_possible);
}

mod tcp {
    use super::over_tcp;
    bandog_conformance::suite!(over_tcp, on = crate::common::if_possible);
}
