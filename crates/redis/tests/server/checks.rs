//! What is checked at connect: the server's role and settings, and the user's permissions.

use std::time::Duration;

use bandog_core::store::{Outcome, StoreError, StoreErrorKind};
use bandog_redis::{RedisConfig, RedisStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Server, documented_rule, if_possible, load_slowly, ms, on_a_server, soon, until};

async fn connect(url: &str) -> Result<RedisStore, StoreError> {
    RedisStore::connect(RedisConfig::from_url(url).unwrap().0).await
}

async fn refused(url: &str) -> StoreError {
    let error = connect(url).await.expect_err(url);
    assert_eq!(error.outcome, Outcome::NotExecuted, "{error}");
    error
}

#[test]
fn a_replica_is_refused() {
    if_possible(async {
        let (master, replica) = (Server::start(), Server::start());
        let _: String = replica.run(&format!("REPLICAOF 127.0.0.1 {}", master.port));
        let error = refused(&replica.url()).await;
        assert_eq!(error.kind, StoreErrorKind::Unfit);
        assert!(
            error.message.contains("is a replica") && error.message.contains("use its master, redis://"),
            "{error}"
        );
    });
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    if_possible(async {
        let server = Server::with(&["--cluster-enabled", "yes"]);
        let error = refused(&server.url()).await;
        assert_eq!(error.kind, StoreErrorKind::Unfit);
        assert!(error.message.contains("cluster"), "{error}");
    });
}

#[test]
fn a_server_that_evicts_is_refused_if_strict() {
    on_a_server(async |server| {
        let _: String = server.run("CONFIG SET maxmemory-policy allkeys-lru");
        connect(&server.url()).await.unwrap();
        let error = refused(&format!("{}?strict=true", server.url())).await;
        assert_eq!(error.kind, StoreErrorKind::Unfit);
        assert!(error.message.contains("allkeys-lru") && error.message.contains("noeviction"), "{error}");
        let _: String = server.run("CONFIG SET maxmemory-policy noeviction");
        connect(&format!("{}?strict=true", server.url())).await.unwrap();
    });
}

#[test]
fn a_wrong_password_is_refused() {
    if_possible(async {
        let server = Server::with(&["--requirepass", "right"]);
        let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port);
        connect(&url(":right@")).await.unwrap();
        for login in ["", ":wrong-s3cret@", "nobody:wrong-s3cret@"] {
            let error = refused(&url(login)).await;
            assert_eq!(error.kind, StoreErrorKind::Denied, "{login}: {error}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    });
}

fn user(server: &Server) -> String {
    format!("redis://locker:secret@127.0.0.1:{}", server.port)
}

#[test]
fn the_documented_rule_is_enough() {
    on_a_server(async |server| {
        let _: String = server.run(&documented_rule());
        connect(&user(&server)).await.unwrap();
    });
}

#[test]
fn a_missing_permission_is_told_with_the_rule_to_add() {
    on_a_server(async |server| {
        let rule = documented_rule();
        let needed: Vec<&str> = rule.split(' ').filter(|word| word.starts_with(['+', '~', '&'])).collect();
        assert!(needed.len() > 10, "{rule}");
        for word in needed {
            let left: Vec<&str> = rule.split(' ').filter(|it| *it != word).collect();
            let weak = left.join(" ").replace("SETUSER locker", "SETUSER locker reset");
            let _: String = server.run(&weak);
            let error = connect(&user(&server)).await.map(drop).expect_err(word);
            assert_eq!(error.kind, StoreErrorKind::Denied, "without {word}: {error}");
            let (_, told) = error.message.rsplit_once("allow it with: ").unwrap_or_else(|| panic!("{word}: {error}"));
            let _: String = server.run(told);
            connect(&user(&server)).await.unwrap_or_else(|error| panic!("after {told:?}: {error}"));
        }
    });
}

#[test]
fn a_missing_permission_found_later_is_told_too() {
    on_a_server(async |server| {
        for command in ["evalsha", "set", "time"] {
            let _: String = server.run(&documented_rule());
            let locks = bandog::Locks::connect(&user(&server)).await.unwrap();
            let _: String = server.run(&format!("ACL SETUSER locker -{command}"));
            let error = soon(command, locks.mutex("job").acquire()).await.unwrap_err();
            assert_eq!(error.kind(), bandog::ErrorKind::Refused, "{command}: {error}");
            assert!(format!("{error:?}").contains("ACL SETUSER locker"), "{command}: {error:?}");
        }
    });
}

#[test]
fn what_is_no_redis_is_refused() {
    if_possible(async {
        for (greeting, kind) in [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", StoreErrorKind::Unfit),
            ("+OK\r\n", StoreErrorKind::Unavailable),
            ("", StoreErrorKind::Unavailable),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("redis://{}", listener.local_addr().unwrap());
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                // Something must have been asked before it is answered.
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(greeting.as_bytes()).await;
            });
            let error = refused(&url).await;
            assert_eq!(error.kind, kind, "{greeting:?}: {error}");
        }
    });
}

#[test]
fn a_server_that_repeats_the_password_is_not_quoted() {
    if_possible(async {
        for greeting in [
            "-ERR wrong arguments: '3' 'AUTH' 'ann' 's3cretplanted'\r\n",
            "-WRONGPASS no user ann with s3cretpla...\r\n",
            "-DENIED tplanted\r\n",
            "-s3cretplanted\r\n",
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                // It must have been asked.
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(greeting.as_bytes()).await;
            });
            let error = refused(&format!("redis://ann:s3cretplanted@{address}")).await;
            let shown = format!("{error} {error:?}");
            assert!(!["s3cr", "cret", "plan", "nted"].iter().any(|piece| shown.contains(piece)), "{shown}");
            if greeting.starts_with("-WRONGPASS") {
                assert_eq!(error.kind, StoreErrorKind::Denied, "what sort it is can still be told");
            }
        }
    });
}

#[test]
fn control_characters_in_server_errors_are_escaped() {
    if_possible(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all("-ERR \x1b]0;owned\x07\x1b[2J\u{202e}nothing\r\n".as_bytes()).await;
        });
        let error = refused(&url).await;
        assert!(error.message.contains("\\u{1b}[2J\\u{202e}nothing"), "{error}");
        assert!(!error.message.contains(|sign: char| sign.is_control() || sign == '\u{202e}'), "{error:?}");
    });
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    if_possible(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}?connect_timeout=100ms", listener.local_addr().unwrap());
        let error = tokio::time::timeout(Duration::from_secs(5), refused(&url)).await.unwrap();
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        assert!(error.message.contains("100ms"), "{error}");
    });
}

#[test]
fn address_without_a_server_is_unavailable() {
    on_a_server(async |server| {
        server.kill();
        assert_eq!(refused(&server.url()).await.kind, StoreErrorKind::Unavailable);
        assert_eq!(refused(&server.unix_url()).await.kind, StoreErrorKind::Unavailable);
        assert_eq!(refused("redis://name.invalid").await.kind, StoreErrorKind::Unavailable);
    });
}

#[test]
fn schedule_25_a_loading_server_is_unavailable() {
    on_a_server(async |server| {
        load_slowly(&server);
        let error = refused(&server.url()).await;
        assert_eq!(error.kind, StoreErrorKind::Unready);
        assert!(error.message.contains("LOADING"), "{error}");
        let is_loaded = || server.try_run::<String>("PING").is_ok();
        until("the data are loaded", is_loaded).await;
        tokio::time::sleep(ms(1)).await;
        connect(&server.url()).await.unwrap();
    });
}

#[test]
fn the_told_rule_fits_a_user_who_may_use_all_keys_and_channels() {
    on_a_server(async |server| {
        let _: String = server.run("ACL SETUSER locker on >secret ~* &* +@connection +info +time");
        let error = connect(&user(&server)).await.map(drop).unwrap_err();
        let (_, told) = error.message.rsplit_once("allow it with: ").unwrap();
        let _: String = server.run(told);
        connect(&user(&server)).await.unwrap();
    });
}
