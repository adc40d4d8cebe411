//! What the server spends on a free lock that is acquired and released, beside the plainest lock there is, and on what.
//!
//! Pipelined, so that its processor time is the scripts' and not the network's; counted by the server itself.

use bandog_core::name::LockName;
use bandog_redis::Value;
use bandog_rig::{Raw, Server};

use crate::Effort;
use crate::figures::{Report, Sides};
use crate::floor::{Floor, load};

/// Processor time per pair, times the plain lock's.
const BAR: f64 = 3.0;
const NAMES: usize = 1_000;
const BATCH: usize = 250;

/// The plain lock, and the parts of ours, each a pair of scripts.
const STEPS: [(&str, [&str; 2]); 5] = [
    ("plain: SET NX PX, compare and DEL", [PLAIN_SET, PLAIN_DEL]),
    ("two calls of an empty script", ["return 1"; 2]),
    ("and the clock (TIME)", ["redis.call('TIME') return 1"; 2]),
    ("and one look at the record (MGET)", ["redis.call('TIME') redis.call('MGET', KEYS[1]) return 1"; 2]),
    (
        "and its two writes (SET, PEXPIREAT)",
        ["redis.call('TIME') redis.call('MGET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL') \
          redis.call('PEXPIREAT', KEYS[1], '4000000000000') return 1"; 2],
    ),
];
const PLAIN_SET: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const PLAIN_DEL: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

pub(crate) fn measure(effort: Effort, report: &mut Report) {
    let server = Server::start();
    let (mut raw, ours) = (Raw::unix(&server), Floor::new(Raw::unix(&server)));
    let scripts = STEPS.map(|(_, texts)| texts.map(|text| load(&mut raw, text)));
    let names: Vec<LockName> = (0..NAMES).map(|number| LockName::new(format!("order:{number}")).unwrap()).collect();
    let pairs = effort.turns * 10;
    let mut times: [Vec<f64>; STEPS.len()] = Default::default();
    let mut whole = Vec::new();
    for _ in 0..effort.rounds {
        for (step, script) in scripts.iter().enumerate() {
            times[step].push(per_pair(&server, pairs, |number| step_words(step, script, number)));
        }
        whole.push(per_pair(&server, pairs, |number| ours.words(&names[number % NAMES])));
    }
    report.head("server's µs per acquire + release", "plain lock");
    for (step, (name, _)) in STEPS.iter().enumerate().skip(1) {
        report.row(name, &Sides { floor: times[0].clone(), ours: times[step].clone() }, None);
    }
    report.row("the lock as it is", &Sides { floor: times[0].clone(), ours: whole }, Some(BAR));
}

fn step_words(step: usize, script: &[Vec<u8>; 2], number: usize) -> [Vec<Vec<u8>>; 2] {
    let key = format!("step:{step}:{}", number % NAMES).into_bytes();
    let value = b"0123456789abcdef0123456789abcdef".to_vec();
    script
        .clone()
        .map(|digest| vec![b"EVALSHA".to_vec(), digest, b"1".to_vec(), key.clone(), value.clone(), b"30000".to_vec()])
}

/// Microseconds of the server's processor per pair.
fn per_pair(server: &Server, pairs: usize, mut words: impl FnMut(usize) -> [Vec<Vec<u8>>; 2]) -> f64 {
    let mut raw = Raw::unix(server);
    let before = used(&mut raw);
    for first in (0..pairs).step_by(BATCH) {
        for number in first..pairs.min(first + BATCH) {
            words(number).iter().for_each(|words| raw.queue(words));
        }
        let refused = raw.answers().into_iter().find(|answer| matches!(answer, Value::Error(_) | Value::Nil));
        assert_eq!(refused, None);
    }
    (used(&mut raw) - before) * 1e6 / pairs as f64
}

fn used(raw: &mut Raw) -> f64 {
    let Value::Bytes(info) = raw.ask(&["INFO", "cpu"]) else { panic!("no info") };
    let info = String::from_utf8_lossy(&info).into_owned();
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    let own = fields.filter(|(name, _)| matches!(*name, "used_cpu_user" | "used_cpu_sys"));
    own.map(|(_, seconds)| seconds.parse::<f64>().unwrap()).sum()
}
