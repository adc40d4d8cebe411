//! What operators and neighbours do to a server in use, and what it does to the locks.

use bandog::{GuardState, Locks, LossReason};
use bandog_redis::{Notices, RedisConfig};
use bandog_rig::{Fault, Proxy};

use crate::support::{Server, locks, ms, on_a_server, soon, store, until};

#[test]
fn a_key_made_persistent_goes_away_all_the_same() {
    on_a_server(async |server| {
        let locks = Locks::builder().store(store(&server.url()).await).build().unwrap();
        let guard = locks.mutex("job").acquire().await.unwrap();
        let _: i32 = server.run("PERSIST lock:job");
        guard.renew().await.unwrap();
        assert!(server.run::<i64>("PTTL lock:job") > 0);
        let _: i32 = server.run("PERSIST lock:job");
        guard.release().await.unwrap();
        until("nothing is left", || server.size() == 0).await;
    });
}

#[test]
fn nothing_is_left_after_the_retention() {
    on_a_server(async |server| {
        let locks = Locks::builder().store(store(&server.url()).await).build().unwrap();
        for name in ["plain", "{braces}", "gl*b[?]", "zażółć 🐕", &"n".repeat(512)] {
            let guard = locks.mutex(name).acquire().await.unwrap();
            assert!(locks.mutex(name).try_acquire().await.unwrap().is_none());
            guard.release().await.unwrap();
        }
        drop(locks.semaphore("permits", 4).permits(2).acquire().await.unwrap());
        drop(locks.rwlock("shared").read().acquire().await.unwrap());
        assert!(server.size() >= 5);
        until("nothing is left", || server.size() == 0).await;
    });
}

#[test]
fn a_lock_is_one_key_and_a_client_one_inbox() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let guards = [ann.mutex("order:1").acquire().await.unwrap(), ann.mutex("order:2").acquire().await.unwrap()];
        let waits = tokio::spawn(async move {
            let both = [bob.mutex("order:1").acquire().await.unwrap(), bob.mutex("order:2").acquire().await.unwrap()];
            both.map(|guard| guard.token())
        });
        until("somebody waits", || server.run::<String>("TYPE lock:order:1") == "hash").await;
        let mut keys: Vec<String> = server.run("KEYS *");
        keys.sort();
        assert_eq!(keys, ["lock:order:1", "lock:order:2"]);
        // One is waited for, the other is not.
        let types = keys.iter().map(|key| server.run::<String>(&format!("TYPE {key}")));
        assert_eq!(types.collect::<Vec<_>>(), ["hash", "string"]);
        let channels: Vec<String> = server.run("PUBSUB CHANNELS *");
        assert!(channels.iter().all(|channel| channel.starts_with("lock:inbox:")), "{channels:?}");
        assert_eq!(channels.iter().filter(|channel| !channel.contains("echo")).count(), 2, "{channels:?}");
        // And one for each connection that sends, by which the server serves it last. A client has another one for its renewals,
        // once the first of them is due.
        let listening: String = server.run("CLIENT LIST TYPE pubsub");
        let named = |name: &str| listening.lines().filter(|line| line.contains(&format!(" name={name} "))).count();
        assert!(listening.lines().all(|line| line.contains(" sub=1 ")), "{listening}");
        assert!(named("bandog-news") == 2 && (2..=4).contains(&named("bandog")), "{listening}");
        let tokens = guards.each_ref().map(bandog::Guard::token);
        drop(guards);
        let later = soon("both locks", waits).await.unwrap();
        assert!(tokens.iter().zip(&later).all(|(token, later)| later > token));
    });
}

#[test]
fn the_prefix_of_the_url_is_that_of_every_key() {
    on_a_server(async |server| {
        let (shop, other) = (locks(&format!("{}?prefix=shop:", server.url())).await, locks(&server.url()).await);
        let _ours = shop.mutex("order:1").acquire().await.unwrap();
        let _theirs = soon("a lock of its own", other.mutex("order:1").acquire()).await.unwrap();
        let mut keys: Vec<String> = server.run("KEYS *");
        keys.sort();
        assert_eq!(keys, ["lock:order:1", "shop:order:1"]);
        until("an inbox", || !server.run::<Vec<String>>("PUBSUB CHANNELS shop:inbox:*").is_empty()).await;
        let found = shop.list("*").await.unwrap();
        assert_eq!(found.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["order:1"], "without its prefix");
    });
}

#[test]
fn a_short_stop_loses_nothing() {
    on_a_server(async |server| {
        let (ann, bob) = (locks(&server.url()).await, locks(&server.url()).await);
        let guard = ann.mutex("job").acquire().await.unwrap();
        let waits = tokio::spawn(async move { bob.mutex("job").acquire().await.unwrap().token() });
        server.stop();
        tokio::time::sleep(ms(800)).await;
        server.go_on();
        soon("a renewal", guard.renew()).await.unwrap();
        assert!(matches!(guard.state(), GuardState::Held { .. }));
        let token = guard.token();
        guard.release().await.unwrap();
        assert!(soon("the next holder", waits).await.unwrap() > token);
    });
}

#[test]
fn a_long_stop_is_told_in_time() {
    on_a_server(async |server| {
        let locks = locks(&server.url()).await;
        let guard = locks.mutex("job").lease(ms(1_000)).acquire().await.unwrap();
        server.stop();
        let reason = soon("the loss", guard.lost()).await;
        let is_held = guard.is_held();
        server.go_on();
        assert!(matches!(reason, LossReason::Unreachable | LossReason::Expired), "{reason:?}");
        assert!(!is_held);
        drop(soon("the next holder", locks.mutex("job").acquire()).await.unwrap());
    });
}

#[test]
fn releases_are_announced_on_demand() {
    on_a_server(async |server| {
        let quiet = locks(&server.url()).await;
        let loud = locks(&format!("{}?announce=true", server.url())).await;
        let mut connection = server.connection();
        connection.set_read_timeout(Some(ms(5_000))).unwrap();
        let mut notices = connection.as_pubsub();
        notices.psubscribe("lock:release:*").unwrap();
        quiet.mutex("quiet").acquire().await.unwrap().release().await.unwrap();
        let guard = loud.mutex(r#"say "a\b""#).acquire().await.unwrap();
        let holder = guard.hold().holder().unwrap().to_string();
        let held = server_millis(&server);
        guard.release().await.unwrap();
        let released = server_millis(&server);
        let notice = notices.get_message().unwrap();
        assert_eq!(notice.get_channel_name(), r#"lock:release:say "a\b""#);
        let text: String = notice.get_payload().unwrap();
        let (start, end) = (r#"{"lockKey":"lock:say \"a\\b\"","releaseTime":"#, format!(r#","holder":"{holder}"}}"#));
        let at = text.strip_prefix(start).and_then(|rest| rest.strip_suffix(&end));
        let at: u64 = at.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        assert!((held..=released).contains(&at), "{at} is not between {held} and {released}");
    });
}

#[test]
fn a_release_is_announced_after_it_took_effect() {
    on_a_server(async |server| {
        let proxy = Proxy::of(&server).await;
        let loud = locks(&format!("{}?announce=true", proxy.url())).await;
        let guard = loud.mutex("job").acquire().await.unwrap();
        // Some were sent when it connected, to learn whether it may.
        let before = proxy.seen("publish");
        let held_up = proxy.plan("release", Fault::HoldReply);
        let releases = tokio::spawn(guard.release());
        soon("the release", held_up).await.unwrap();
        let other = locks(&server.url()).await;
        drop(soon("the lock", other.mutex("job").acquire()).await.unwrap());
        assert_eq!(proxy.seen("publish"), before, "announced before the server said that it is released");
        proxy.let_go();
        soon("the answer", releases).await.unwrap().unwrap();
        until("the notice", || proxy.seen("publish") == before + 1).await;
    });
}

/// The server's clock, in milliseconds.
fn server_millis(server: &Server) -> u64 {
    let (seconds, micros): (u64, u64) = server.run("TIME");
    seconds * 1_000 + micros / 1_000
}

#[test]
fn notices_are_heard_by_whoever_listens() {
    on_a_server(async |server| {
        let url = format!("{}?announce=true&prefix=a*:", server.url());
        let config = |url: &str| RedisConfig::from_url(url).unwrap().0;
        assert!(Notices::listen(&config(&server.url())).await.unwrap().is_none(), "nobody said announce");
        let mut notices = Notices::listen(&config(&url)).await.unwrap().unwrap();
        let loud = locks(&url).await;
        let guard = loud.mutex(r#"say "a\b""#).acquire().await.unwrap();
        let holder = guard.hold().holder();
        guard.release().await.unwrap();
        let notice = soon("the notice", notices.next()).await.unwrap();
        assert_eq!((notice.name.as_str(), notice.holder), (r#"say "a\b""#, holder));
        let _: u64 = server.run("CLIENT KILL TYPE pubsub");
        assert_eq!(soon("the end", notices.next()).await, None);
    });
}

#[test]
fn user_without_permission_for_notices_is_told_the_acl_rule() {
    on_a_server(async |server| {
        let _: String = server.run("ACL SETUSER ann on >pw ~* resetchannels &lock:inbox:* +@all -psubscribe");
        let url = server.url().replace("redis://", "redis://ann:pw@");
        let config = RedisConfig::from_url(&format!("{url}?announce=true")).unwrap().0;
        let error = Notices::listen(&config).await.unwrap_err();
        let rule = "ACL SETUSER ann &lock:release:* +psubscribe";
        assert!(error.to_string().contains(rule), "{error}");
        let _: String = server.run(rule);
        assert!(Notices::listen(&config).await.unwrap().is_some());
    });
}
