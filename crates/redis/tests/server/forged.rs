//! Somebody may publish on this server, and read and write no key. It moves nobody, whatever it says.

use std::time::Duration;

use bandog::{GuardState, Locks};
use bandog_rig::{Raw, Server};
use tokio::time::sleep;

use crate::support::{locks, ms, on_a_server, soon};

/// Whoever can publish, and nothing else.
struct Forger(Raw);

impl Forger {
    fn new(server: &Server) -> Self {
        server.tell("ACL SETUSER forger on >pw resetkeys resetchannels &lock:* -@all +publish +auth");
        let mut connection = Raw::unix(server);
        connection.ask(&["AUTH", "forger", "pw"]);
        Self(connection)
    }

    /// Says this to every client that listens, as each format would.
    fn says(&mut self, server: &Server, news: &[u8], name: &str) {
        for channel in server.run::<Vec<String>>("PUBSUB CHANNELS lock:inbox:*") {
            for format in [&b""[..], b"\x03"] {
                let payload = [format, news, b"lock:", name.as_bytes()].concat();
                self.0.ask(&[b"PUBLISH".as_slice(), channel.as_bytes(), &payload]);
            }
        }
    }

    /// Grants and revokes whatever a running number would name.
    fn strikes(&mut self, server: &Server, name: &str) {
        let absurd = (1_u64 << 52) - 1;
        for number in (0..64_u64).chain([u64::MAX]) {
            let granted = [&b"G"[..], &number.to_be_bytes(), &absurd.to_be_bytes(), &[0; 5]].concat();
            let revoked = [&b"R"[..], &number.to_be_bytes(), &6_u32.to_be_bytes(), b"forged"].concat();
            self.says(server, &granted, name);
            self.says(server, &revoked, name);
        }
    }
}

#[test]
fn forged_grants_make_no_waiter_believe_that_it_holds() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let held = ann.mutex("job").acquire().await.unwrap();
        let waits = tokio::spawn({
            let request = bob.mutex("job").fair();
            async move { request.acquire().await }
        });
        until_waiting(&ann, "job").await;
        let mut forger = Forger::new(&server);
        forger.strikes(&server, "job");
        // Whatever was to be believed at once has been by now.
        sleep(ms(100)).await;
        assert!(!waits.is_finished(), "a forged grant was believed");
        assert!(held.is_held());
        let token = held.token();
        held.release().await.unwrap();
        let next = soon("the grant", waits).await.unwrap().unwrap();
        assert!(next.token() > token && u64::from(next.token()) < u64::from(token) + (1 << 44), "{:?}", next.token());
    });
}

#[test]
fn forged_revocations_end_no_hold() {
    on_a_server(async |server| {
        let ann = locks(&server.url()).await;
        let held = ann.mutex("job").acquire().await.unwrap();
        let mut forger = Forger::new(&server);
        forger.strikes(&server, "job");
        sleep(ms(100)).await;
        assert!(matches!(held.state(), GuardState::Held { .. }), "{:?}", held.state());
        assert!(ann.revoke("job", "a real one").await.unwrap().is_some());
        let reason = soon("the loss", held.lost()).await;
        assert!(reason.to_string().contains("a real one"), "{reason}");
    });
}

#[test]
fn pushed_token_that_the_server_cannot_have_minted_is_asked_for() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let held = ann.mutex("job").acquire().await.unwrap();
        let waits = tokio::spawn({
            let request = bob.mutex("job").fair();
            async move { request.acquire().await }
        });
        until_waiting(&ann, "job").await;
        // Whoever may read keys knows the number of the claim that waits.
        let waiter: Vec<u8> = server.run("HGET lock:job w1");
        let number = &waiter[46 + 16..46 + 24];
        let absurd = (1_u64 << 52) - 1;
        let granted = [&b"G"[..], number, &absurd.to_be_bytes(), &[0; 5]].concat();
        Forger::new(&server).says(&server, &granted, "job");
        sleep(ms(100)).await;
        assert!(!waits.is_finished(), "the absurd token was believed");
        let token = held.token();
        held.release().await.unwrap();
        let next = soon("the grant", waits).await.unwrap().unwrap();
        assert!(u64::from(next.token()) < u64::from(token) + (1 << 44), "{:?}", next.token());
    });
}

async fn until_waiting(locks: &Locks, name: &str) {
    while locks.inspect(name).await.unwrap().is_none_or(|lock| lock.record.waiters.is_empty()) {
        sleep(Duration::from_millis(2)).await;
    }
}
