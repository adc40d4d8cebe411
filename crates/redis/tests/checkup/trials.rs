//! What shows only by doing: slow answers, slow neighbours, a clock that steps, keys that are none of ours, news that does not come.

use std::sync::Arc;

use bandog_core::checkup::Fitness::{Risky, Unknown, Wrong};
use bandog_rig::{Fault, Proxy, WallClock};

use crate::support::{Server, if_possible, is_missing, ms, soon};
use crate::{ailing, examine, good_but, told};

#[test]
fn a_slow_answer_is_told() {
    if_possible(async {
        let server = good_but(&[]);
        let proxy = Proxy::of(&server).await;
        let held = proxy.plan("ping", Fault::HoldReply);
        let url = proxy.url();
        let examined = tokio::spawn(async move { examine(&url).await });
        soon("a ping", held).await.unwrap();
        // More than a quarter of the response timeout: it is the length itself that is seen.
        tokio::time::sleep(ms(550)).await;
        proxy.let_go();
        let found = examined.await.unwrap();
        let remark = told(&found, "latency", Risky, &["longest", "the limit is 500 ms"]);
        assert!(remark.change.as_ref().unwrap().contains("response_timeout="), "{remark:?}");
    });
}

#[test]
fn a_server_that_falls_silent_is_wrong_and_the_checkup_ends() {
    if_possible(async {
        let server = good_but(&[]);
        let proxy = Proxy::of(&server).await;
        let held = proxy.plan("ping", Fault::HoldReply);
        let url = format!("{}?response_timeout=300ms", proxy.url());
        let (config, _) = bandog_redis::RedisConfig::from_url(&url).unwrap();
        let pace = bandog_core::checkup::Pace { response_timeout: ms(300), ..Default::default() };
        let found = soon("the checkup", bandog_redis::checkup(&config, &pace)).await.unwrap();
        soon("a ping", held).await.unwrap();
        told(&found, "latency", Wrong, &["a ping has no answer"]);
    });
}

#[test]
fn a_server_that_is_busy_with_a_script_serves_no_lock() {
    if_possible(async {
        let server = good_but(&[]);
        server.keep_busy();
        let found = examine(&server.url()).await;
        let remark = told(&found, "locking", Wrong, &["a lock could not be tried", "BUSY"]);
        assert!(remark.change.as_ref().unwrap().starts_with("SCRIPT KILL"), "{remark:?}");
        told(&found, "latency", Unknown, &["PING is refused (BUSY"]);
    });
}

#[test]
fn slow_commands_of_others_are_told() {
    if_possible(async {
        let server = good_but(&[]);
        let _: String = server.run("DEBUG SLEEP 0.15");
        let found = examine(&server.url()).await;
        told(&found, "slow-commands", Risky, &["DEBUG"]);
        assert_eq!(ailing(&found), ["slow-commands"]);
    });
}

#[test]
fn a_clock_that_steps_is_wrong() {
    if is_missing() {
        return;
    }
    let Some(clock) = WallClock::new().map(Arc::new) else { return };
    if_possible(async {
        for seconds in [60, -60] {
            clock.set(0);
            let server = Server::by(&clock);
            let proxy = Proxy::of(&server).await;
            let url = proxy.url();
            let examined = tokio::spawn(async move { examine(&url).await });
            // Once the clock is being watched.
            let looks = async {
                while proxy.seen("time") < 5 {
                    tokio::time::sleep(ms(5)).await;
                }
            };
            soon("looks at the clock", looks).await;
            clock.set(seconds);
            let found = examined.await.unwrap();
            let way = if seconds > 0 { "forward" } else { "back" };
            let remark = told(&found, "clock", Wrong, &[way]);
            assert!(remark.change.as_ref().unwrap().contains("makestep"), "{remark:?}");
        }
    });
}

#[test]
fn keys_that_are_none_of_ours_or_never_end_are_told() {
    if_possible(async {
        let server = good_but(&[]);
        let _: String = server.run("SET lock:note hello");
        let _: i64 = server.run("HSET lock:forever a b");
        let _: String = server.run("SET lock:theirs a-token-of-another-library-that-is-long-enough EX 60");
        let _: String = server.run("SET other:note hello");
        let found = examine(&server.url()).await;
        let remark = told(
            &found,
            "keys",
            Risky,
            &["looked at 3 keys", "lock:note (string)", "lock:theirs (string)", "lock:forever (hash)"],
        );
        assert!(!remark.saw.contains("other:") && !remark.saw.contains("hello"), "{remark:?}");
        assert_eq!(ailing(&found), ["keys"]);
        assert_eq!(server.size(), 4, "they are left alone");
        assert_eq!(ailing(&examine(&format!("{}?prefix=bandog:", server.url())).await), Vec::<&str>::new());
    });
}

#[test]
fn locks_in_use_are_no_leftovers() {
    if_possible(async {
        let server = good_but(&[]);
        let locks = crate::support::locks(&server.url()).await;
        let held = locks.mutex("held").acquire().await.unwrap();
        locks.mutex("released").acquire().await.unwrap().release().await.unwrap();
        let found = examine(&server.url()).await;
        assert_eq!(ailing(&found), Vec::<&str>::new(), "{found:#?}");
        told(&found, "keys", bandog_core::checkup::Fitness::Fine, &["looked at 2 keys"]);
        assert!(held.is_held());
    });
}

#[test]
fn news_that_does_not_come_is_told() {
    if_possible(async {
        let server = good_but(&[]);
        let proxy = Proxy::of(&server).await;
        proxy.deafen(true);
        let found = examine(&proxy.url()).await;
        told(&found, "delivery", Risky, &["did not arrive"]);
        assert_eq!(ailing(&found), ["delivery"]);
    });
}
