//! The Redis store keeps every promise of the store contract: over TCP and over a socket.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod support;

use bandog_conformance::Bench;
use support::{Server, bench};

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

mod tcp {
    use super::over_tcp;
    bandog_conformance::suite!(over_tcp);
}

mod socket {
    use super::over_a_socket;
    bandog_conformance::suite!(over_a_socket);
}
