//! Servers that turn us away, or let everybody in; and users who may not do all that is needed.

use bandog_core::checkup::Fitness::{Risky, Unknown, Wrong};
use bandog_core::checkup::{Checkup, Pace};
use bandog_core::store::StoreErrorKind;
use bandog_redis::{RedisConfig, checkup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Server, documented_rule, if_possible};
use crate::{ailing, examine, good_but, told};

#[test]
fn a_server_that_lets_everybody_in_is_wrong() {
    if_possible(async {
        // An address that this machine does not have: the server would listen there, and cannot.
        let server = good_but(&["--bind", "127.0.0.1", "-192.0.2.1", "--protected-mode", "no"]);
        let found = examine(&server.url()).await;
        told(&found, "login", Wrong, &["no password is needed", "protected-mode is no", "192.0.2.1"]);
        assert_eq!(ailing(&found), ["login"]);
        let _: String = server.run("CONFIG SET protected-mode yes");
        assert_eq!(ailing(&examine(&server.url()).await), Vec::<&str>::new());
    });
}

#[test]
fn a_wrong_password_is_told_and_not_repeated() {
    if_possible(async {
        let server = good_but(&["--requirepass", "right"]);
        for login in ["", ":wrong-s3cret@", "nobody:wrong-s3cret@"] {
            let found = examine(&format!("redis://{login}127.0.0.1:{}", server.port)).await;
            told(&found, "login", Wrong, &[]);
            assert_eq!(ailing(&found), ["login"]);
            assert!(!format!("{found:?}").contains("s3cret"), "{found:?}");
        }
    });
}

fn user(server: &Server) -> String {
    format!("redis://locker:secret@127.0.0.1:{}", server.port)
}

#[test]
fn a_missing_permission_is_told_with_the_line_that_gives_it() {
    if_possible(async {
        let whole = documented_rule() + " +config|get +slowlog|get +type +getrange";
        let missing = [
            ("+mget", "mget"),
            ("+mset", "mset"),
            ("+setrange", "setrange"),
            ("+hset", "hset"),
            ("+evalsha", "evalsha"),
            ("+script|load", "script"),
            ("+publish", "publish"),
            ("+info", "info"),
            ("&lock:inbox:*", "the channels lock:inbox:*"),
            ("~lock:*", "the keys lock:*"),
        ];
        let servers = missing.map(|(word, _)| {
            let server = good_but(&[]);
            let left: Vec<&str> = whole.split(' ').filter(|it| *it != word).collect();
            let _: String = server.run(&left.join(" "));
            server
        });
        let founds = examine_all(&servers).await;
        for ((_, named), (server, found)) in missing.iter().zip(servers.iter().zip(&founds)) {
            let remark = told(found, "permissions", Wrong, &["locker", named]);
            let _: String = server.run(remark.change.as_ref().unwrap());
        }
        for (found, (word, _)) in examine_all(&servers).await.iter().zip(missing) {
            assert_eq!(ailing(found), Vec::<&str>::new(), "with {word} given back: {found:#?}");
        }
    });
}

/// All at once: each examination watches the server's clock for a second.
async fn examine_all(servers: &[Server]) -> Vec<Checkup> {
    let urls = servers.iter().map(user);
    let tasks: Vec<_> = urls.map(|url| tokio::spawn(async move { examine(&url).await })).collect();
    let mut founds = Vec::new();
    for task in tasks {
        founds.push(task.await.unwrap());
    }
    founds
}

#[test]
fn check_without_the_permission_to_try_it_is_unknown() {
    if_possible(async {
        let server = good_but(&[]);
        let _: String = server.run("ACL SETUSER locker on >secret +ping");
        let found = examine(&user(&server)).await;
        told(&found, "permissions", Wrong, &["time", "info"]);
        for about in ["version", "role", "eviction", "memory", "persistence", "clock", "locking", "delivery", "keys"] {
            told(&found, about, Unknown, &[]);
        }
        assert_eq!(server.size(), 0);
    });
}

#[test]
fn checkup_without_a_server_is_an_error() {
    if_possible(async {
        let server = Server::start();
        let url = server.url();
        server.kill();
        let (config, _) = RedisConfig::from_url(&url).unwrap();
        let error = checkup(&config, &Pace::default()).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        assert!(error.message.contains(&format!("127.0.0.1:{}", server.port)), "{error}");
    });
}

#[test]
fn checkup_reports_a_server_that_is_not_redis() {
    if_possible(async {
        for (greeting, about) in
            [("HTTP/1.1 400 Bad Request\r\n\r\n", "version"), ("-ERR unknown command `HELLO`\r\n", "version")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("redis://{}", listener.local_addr().unwrap());
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                // Something must have been asked before it is answered.
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(greeting.as_bytes()).await;
                let _ = stream.read(&mut [0; 1024]).await;
            });
            told(&examine(&url).await, about, Wrong, &[]);
        }
    });
}

#[test]
fn a_name_of_another_machine_without_tls_is_risky() {
    if_possible(async {
        // No such machine: only what the address says is judged, and that nobody answers.
        let (config, _) = RedisConfig::from_url("redis://name.invalid").unwrap();
        assert_eq!(checkup(&config, &Pace::default()).await.unwrap_err().kind, StoreErrorKind::Unavailable);
        let server = good_but(&["--bind", "0.0.0.0", "--requirepass", "s3cret"]);
        let here = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        // Nothing is sent: it only chooses the address that others would see.
        if here.connect("192.0.2.1:9").is_err() {
            return eprintln!("!!! SKIPPED: this machine has no network, so no address but its own");
        }
        let address = here.local_addr().unwrap().ip();
        let found = examine(&format!("redis://:s3cret@{address}:{}", server.port)).await;
        let remark = told(&found, "tls", Risky, &["plain TCP"]);
        assert!(remark.change.as_ref().unwrap().contains("rediss://"), "{remark:?}");
        assert_eq!(ailing(&found), ["tls"]);
    });
}

#[test]
fn a_server_that_goes_away_at_once_is_not_there() {
    if_possible(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (config, _) = RedisConfig::from_url(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // It greets, and is gone before the first question is answered.
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"%1\r\n+proto\r\n:3\r\n").await;
        });
        let error = checkup(&config, &Pace::default()).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
    });
}
