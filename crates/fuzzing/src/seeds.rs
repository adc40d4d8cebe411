//! Where a fuzzer begins: bytes that each target reads to the end. The bounded tests change them a little.

use bandog_core::format::Format;
use bandog_core::holder::ClientId;
use bandog_core::ledger::{Limits, Record};
use bandog_core::op::Op;
use bandog_core::time::{LeaseTime, Now, RunId, WallTime};

use crate::ops::ops;

/// Bytes to begin with.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let texts: &[&str] = match target {
        "resp" => &["\x01*2\r\n:1\r\n$3\r\nabc\r\n", "\x03%1\r\n+a\r\n_\r\n|1\r\n+b\r\n:1\r\n>1\r\n+message\r\n"],
        "answers" => ANSWERS,
        "opening" => &[
            "*0\r\n$60\r\nredis_version:7.2.0\r\nrun_id:0123456789abcdef\r\nrole:master\r\n\r\n\r\n*2\r\n$2\r\n17\r\n$1\r\n5\r\n",
            "$1\r\n*\r\n$14\r\nlock:release:a\r\n$29\r\n{\"holder\":\"0123456789abcdef\"}\r\n",
        ],
        "news" => &[
            "Waaaa",
            "W1lock:a",
            "lock:inbox:00000000000000ab",
            "lock:a",
            "G\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x03\x01lock:a",
            "R\0\0\0\0\0\0\0\x01\0\0\0\x02nolock:a",
        ],
        "url" => &[
            "redis://ann:pw@host:7000/3?prefix=a%3a&db=4&lease=3s&connect_timeout=1s",
            "rediss://[::1]:7/1?ca=/c&cert=/d&key=/e",
            "redis+unix://:p@/run/a%20b.sock?db=2",
            "postgres://ann:p%40@a,[::1]:3/db?schema=x&sslmode=disable&connect_timeout=1.5",
            "postgres:///db?host=/run",
            "sqlite:~/x?lease=1h30m&renew_every=0.5",
            "memory:a?max_renewals=3&recovery=reacquire",
        ],
        "config" => {
            &["store = \"redis://h\"\nlease = 30\nwait = '5s'\nfair = true\n", "lease = [1]\n[a]\nb = 1979-05-27\n"]
        }
        "ticket" => return tickets(),
        "name" => &["order:1001", "zażółć 🐕", "a b"],
        "pattern" => &["order:*\0order:1", "[a-z]?\\*\0ab*", "[^a]*[!b]\0cc"],
        "secrets" => &["\0\x01ann", "\x01lease = \0\"\n", "\x02ff", "\0\0a/b\0h:x/0?db=z"],
        "record" => return records(),
        "frame" => return frames(),
        _ => &[],
    };
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const ANSWERS: &[&str] = &[
    ":17\r\n",
    "$16\r\n\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\r\n",
    "*7\r\n:1\r\n:0\r\n:1\r\n:5\r\n:6\r\n:7\r\n:1\r\n",
    "*5\r\n:1\r\n:0\r\n:2\r\n:5\r\n:6\r\n",
    "*5\r\n:1\r\n:0\r\n:3\r\n:9\r\n$32\r\n0000000000000000\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\r\n",
    "*4\r\n:1\r\n:0\r\n:4\r\n:1\r\n",
    "*4\r\n:1\r\n:0\r\n:0\r\n$8\r\n\0\0\0\0\0\0\0\x01\r\n",
    "*3\r\n:1\r\n:0\r\n*2\r\n*0\r\n*5\r\n:1\r\n:5\r\n:6\r\n:7\r\n:0\r\n",
    "*3\r\n:1\r\n:1\r\n*7\r\n:1\r\n:1\r\n:4\r\n*1\r\n*6\r\n:2\r\n:1\r\n:1\r\n:1\r\n:1\r\n$32\r\n0000000000000000\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\r\n\
     *1\r\n*5\r\n:0\r\n:0\r\n:1\r\n:1\r\n$32\r\n0000000000000000\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\r\n*0\r\n:1\r\n",
];

fn tickets() -> Vec<Vec<u8>> {
    // Read and written by the release that made it: another may read another kind.
    let one = "bandog1-00000000000000000000000000000001000000000000000100000000000008000000000000007530";
    vec![one.into(), format!("{one}6a6f62").into_bytes(), b"bandog1-".to_vec()]
}

/// Records after one, two and three operations, as a file holds them, behind a time: of every kind, and of one kind by three claims.
fn records() -> Vec<Vec<u8>> {
    let id = |client, seq| ClientId::from_random(client).holder(seq);
    let kinds =
        [(id(0, 0), id(0, 1)), (id(1, 0), id(0, 0)), (id(0, 1), id(1, 0))].map(|(first, second)| ops(first, second));
    let [ones, twos, threes] = &kinds;
    let alike = (0..ones.len()).map(|at| vec![&ones[at], &twos[at], &threes[at]]);
    let mixed = ones.iter().flat_map(|one| twos.iter().map(move |two| vec![one, two]));
    let mut seeds: Vec<Vec<u8>> = alike.chain(mixed).flat_map(|ops| grown(&ops)).collect();
    seeds.sort();
    seeds.dedup();
    seeds
}

/// A few of them in each format, and behind a newer number.
fn frames() -> Vec<Vec<u8>> {
    let bodies = records().into_iter().step_by(40).map(|seed| seed[2..].to_vec());
    bodies.flat_map(|body| [None, Some(3), Some(4)].map(|number| bandog_record::sealed("job", number, &body))).collect()
}

/// A record after each of the operations.
fn grown(ops: &[&Op]) -> Vec<Vec<u8>> {
    let mut record = Record::default();
    let grown = ops.iter().filter_map(|op| {
        let now = Now { lease: LeaseTime::from_millis(16), wall: WallTime::from_micros(16_000), run: RunId(1) };
        record.apply(&Limits::default(), now, op);
        // Without the number and the checksum.
        let bytes = bandog_record::encode("job", &record, Format::NEWEST).ok()?.split_off(9);
        Some([&[0, 1][..], &bytes].concat())
    });
    grown.collect()
}
