//! Numbers that no clock shows, and others that are too large for what is done with them.

use bandog_core::checkup::Pace;
use bandog_core::op::Op;
use bandog_core::store::Ask;
use bandog_core::store::StoreErrorKind;
use bandog_redis::{RedisConfig, RedisStore, checkup, population};

use crate::peer::Peer;
use crate::support::{claim, client, if_possible, ms, soon};

const TIMES: [(&str, &str); 8] = [
    ("18446744073709551615", "0"),
    ("18446744073709551", "18446744073709551615"),
    ("18446744073709551", "615999"),
    ("9223372036854775807", "999999"),
    ("170141183460469231731687303715884105727", "0"),
    ("-170141183460469231731687303715884105728", "-1"),
    ("-1", "0"),
    ("", ""),
];

fn time((seconds, micros): (&str, &str)) -> Vec<u8> {
    format!("*2\r\n${}\r\n{seconds}\r\n${}\r\n{micros}\r\n", seconds.len(), micros.len()).into_bytes()
}

fn config(peer: &Peer) -> RedisConfig {
    RedisConfig::from_url(&peer.url).unwrap().0
}

#[test]
fn a_time_that_no_clock_shows_is_no_panic() {
    if_possible(async {
        for told in TIMES {
            let peer = Peer::start(move |words| (words[0] == "TIME").then(|| time(told))).await;
            match soon("an answer", RedisStore::connect(config(&peer))).await {
                Ok(store) => drop(
                    soon(
                        "an answer",
                        store.apply(
                            bandog_core::name::LockName::new("job").unwrap(),
                            claim(&store, &client(1), ms(1_000)),
                        ),
                    )
                    .await,
                ),
                Err(error) => assert_eq!(error.kind, StoreErrorKind::Unfit, "{told:?}: {error}"),
            }
        }
    });
}

#[test]
fn an_examination_survives_numbers_that_nobody_has() {
    if_possible(async {
        let large = "18446744073709551615";
        let examinations = TIMES.into_iter().map(|told| async move {
            let info = [
                "redis_version:7.2.0",
                "run_id:0123456789abcdef",
                "role:master",
                "redis_mode:standalone",
                "loading:0",
                "rdb_last_bgsave_status:ok",
                "aof_enabled:0",
                "maxmemory_policy:noeviction",
            ]
            .map(str::to_owned)
            .into_iter()
            .chain(
                [
                    "maxmemory",
                    "used_memory",
                    "used_memory_rss",
                    "total_system_memory",
                    "maxclients",
                    "connected_clients",
                    "connected_slaves",
                    "min_slaves_good_slaves",
                ]
                .map(|field| format!("{field}:{large}")),
            )
            .chain([
                format!("db0:keys={large},expires=0"),
                format!("db1:keys={large},expires=0"),
                format!("cmdstat_evalsha:calls={large},usec={large}"),
            ])
            .collect::<Vec<_>>()
            .join("\r\n");
            let peer = Peer::start(move |words| match words[0].as_str() {
                "TIME" => Some(time(told)),
                "INFO" => Some(format!("${}\r\n{info}\r\n", info.len()).into_bytes()),
                "SLOWLOG" => {
                    let entry = |at: i64| format!("*4\r\n:1\r\n:{at}\r\n:{at}\r\n*1\r\n$3\r\nGET\r\n");
                    Some(format!("*2\r\n{}{}", entry(i64::MIN), entry(i64::MAX)).into_bytes())
                }
                "CONFIG" => {
                    let text = format!("pubsub {large} {large} {large}");
                    let value = if words[2] == "client-output-buffer-limit" { &text } else { large };
                    let setting = &words[2];
                    Some(
                        format!("*2\r\n${}\r\n{setting}\r\n${}\r\n{value}\r\n", setting.len(), value.len())
                            .into_bytes(),
                    )
                }
                "SCAN" => {
                    let keys = "$6\r\nlock:a\r\n".repeat(20_000);
                    Some(format!("*2\r\n$1\r\n1\r\n*20000\r\n{keys}").into_bytes())
                }
                "PTTL" => Some(format!(":{}\r\n", i64::MIN).into_bytes()),
                "TYPE" => Some(b"+string\r\n".to_vec()),
                "GETRANGE" => Some(b"$0\r\n\r\n".to_vec()),
                _ => None,
            })
            .await;
            let pace = Pace { response_timeout: ms(500), ..Pace::default() };
            let found = tokio::time::timeout(ms(60_000), checkup(&config(&peer), &pace)).await.unwrap().unwrap();
            assert!(found.remarks.len() > 10, "{told:?}: {found:?}");
            assert_eq!(population(&config(&peer)).await.unwrap(), Some(u64::MAX));
        });
        for examination in examinations.map(tokio::spawn).collect::<Vec<_>>() {
            examination.await.unwrap();
        }
    });
}

#[test]
fn a_reply_of_any_time_and_length_is_no_panic() {
    if_possible(async {
        let most = i64::MAX;
        let replies = [
            format!(":{most}\r\n"),
            format!("*2\r\n:{most}\r\n:0\r\n"),
            format!("*7\r\n:{most}\r\n:0\r\n:1\r\n:{most}\r\n:{most}\r\n:4294967295\r\n:1\r\n"),
            format!("*5\r\n:{most}\r\n:0\r\n:2\r\n:{most}\r\n:4294967295\r\n"),
            format!("$16\r\n{}\r\n", "\u{7f}".repeat(16)),
        ];
        for reply in replies {
            let told = reply.clone();
            let peer =
                Peer::start(move |words| (words[0] == "EVALSHA" && words[2] != "0").then(|| told.clone().into_bytes()))
                    .await;
            let locks = bandog::Locks::builder().unavailable_after(ms(300)).connect(&peer.url).await.unwrap();
            // Whatever it is told, it is told something.
            drop(soon(&reply, locks.mutex("job").wait(ms(300)).acquire()).await);
            drop(soon(&reply, locks.mutex("job").try_acquire()).await);
            drop(soon(&reply, locks.inspect("job")).await);
            let store = RedisStore::connect(config(&peer)).await.unwrap();
            drop(soon(&reply, store.apply(bandog_core::name::LockName::new("job").unwrap(), Op::Inspect)).await);
        }
    });
}
