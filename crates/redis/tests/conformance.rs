//! The Redis store keeps every promise of the store contract: over TCP, over a socket, and as a user who may do what the documentation says
//! and nothing else.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod support;

use bandog_conformance::Bench;
use support::{Server, bench, documented_rule};

async fn over_tcp() -> Bench {
    let server = Server::start();
    let url = server.url();
    bench(server, url).await
}

async fn over_a_socket() -> Bench {
    let server = Server::start();
    let url = server.unix_url();
    bench(server, url).await
}

async fn as_the_documented_user() -> Bench {
    let server = Server::start();
    let _: String = server.run(&documented_rule());
    let url = format!("redis://locker:secret@127.0.0.1:{}", server.port);
    bench(server, url).await
}

mod tcp {
    use super::over_tcp;
    bandog_conformance::suite!(over_tcp, on = crate::support::if_possible);
}

mod socket {
    use super::over_a_socket;
    bandog_conformance::suite!(over_a_socket, on = crate::support::if_possible);
}

mod user {
    use super::as_the_documented_user;
    bandog_conformance::suite!(as_the_documented_user, on = crate::support::if_possible);
}
