//! What the scripts cost: redis.calls on the fast paths, server time beside the plainest lock there is, and hand-offs in
//! long queues. Run with `--nocapture` to see the numbers.

use std::sync::Arc;
use std::time::Duration;

use bandog_core::holder::{Client, ClientId, HolderId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Heartbeat, Op, Patience, Release, Renew, Renewal};
use bandog_core::time::{LeaseTime, RunId};
use bandog_redis::{Call, Codec, Keys, Script, Value};

use crate::fake::Fake;
use crate::pair::Host;
use crate::real::evalsha;
use crate::server::{Connection, Server};

const ROUNDS: usize = 7;
const PAIRS: usize = 10_000;
const NAMES: usize = 1_000;
const BATCH: usize = 250;

fn client(number: u128) -> Client {
    let who = Who { host: "worker-17.example".into(), pid: 4711, label: "billing".into() };
    Client::new(ClientId::from_random(number), who)
}

fn claim(client: &Client, not_after: u64) -> Claim {
    Claim {
        id: client.fresh(),
        inbox: client.inbox(),
        who: Arc::clone(client.who()),
        mode: Mode::Exclusive,
        lease: Lease::new(Duration::from_secs(30)).expect("a good lease"),
        window: Duration::from_secs(5),
        fair: false,
        patience: Patience::Queue,
        not_after: LeaseTime::from_millis(not_after),
        ballot: None,
    }
}

fn release(id: HolderId) -> Op {
    Op::Release(Release { id, not_after: None, again: None })
}

fn name(number: usize) -> LockName {
    LockName::new(format!("order:{number}")).expect("a good name")
}

#[test]
fn fast_paths_make_four_calls() {
    let (fake, codec, client) = (Fake::new(), Codec::new(Keys::default(), Limits::default()), client(1));
    fake.set_micros(1_000_000);
    let calls = |op: &Op| {
        let answer = fake.run(&codec.call(&name(1), op));
        codec.reply(op, RunId(1), answer).expect("a reply");
        fake.calls()
    };
    let claims: Vec<Claim> = (0..4).map(|_| claim(&client, 2_000)).collect();
    let acquire = |number: usize| Op::Acquire(claims[number].clone());
    let renew = Op::Renew(Renew { id: claims[1].id, lease: claims[1].lease });
    let beat =
        Op::Heartbeat(Heartbeat { inbox: client.inbox(), ids: vec![claims[2].id], alive: Duration::from_secs(10) });
    let steps = [
        ("acquire, absent", acquire(0), 4),
        ("release", release(claims[0].id), 4),
        ("acquire, released before", acquire(1), 4),
        ("renew", renew.clone(), 4),
        ("acquire, held: queue", acquire(2), 6),
        ("acquire, held: queue behind another", acquire(3), 6),
        ("renew, with a waiter", renew, 6),
        ("heartbeat", beat, 6),
        ("release: hand-off", release(claims[1].id), 9),
        ("release a place", release(claims[3].id), 7),
    ];
    for (what, op, most) in steps {
        let made = calls(&op);
        println!("{made:>3} redis.calls  {what}");
        assert!(made <= most, "{what} made {made} calls");
    }
}

/// A server with everything loaded, measured by its own count of processor time.
struct Bench {
    _server: Server,
    connection: Connection,
    shas: Vec<(Script, Vec<u8>)>,
    plain: [Vec<u8>; 2],
}

impl Bench {
    fn new(server: Server) -> Self {
        let mut connection = server.connect();
        let mut load = |text: &str| match connection.ask(&["SCRIPT", "LOAD", text]) {
            Value::Bytes(sha) => sha,
            other => panic!("not loaded: {other:?}"),
        };
        let shas = Script::ALL.into_iter().map(|script| (script, load(script.text()))).collect();
        let plain = [
            load("return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"),
            load("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"),
        ];
        Self { _server: server, connection, shas, plain }
    }

    fn queue(&mut self, call: &Call) {
        let sha = self.shas.iter().find(|(script, _)| *script == call.script).map(|(_, sha)| sha.clone());
        self.connection.queue(&evalsha(&sha.expect("loaded"), call));
    }

    fn millis(&mut self) -> u64 {
        let Value::Array(parts) = self.connection.ask(&["TIME"]) else { panic!("no time") };
        let part = |at: usize| match &parts[at] {
            Value::Bytes(digits) => String::from_utf8_lossy(digits).parse::<u64>().expect("a number"),
            other => panic!("{other:?}"),
        };
        part(0) * 1000 + part(1) / 1000
    }

    /// Processor seconds that the server has used.
    fn used(&mut self) -> f64 {
        let Value::Bytes(info) = self.connection.ask(&["INFO", "cpu"]) else { panic!("no info") };
        let info = String::from_utf8_lossy(&info).into_owned();
        let fields = info.lines().filter_map(|line| line.split_once(':'));
        let own = fields.filter(|(name, _)| matches!(*name, "used_cpu_user" | "used_cpu_sys"));
        own.map(|(_, seconds)| seconds.parse::<f64>().expect("seconds")).sum()
    }

    /// Microseconds of the server per repetition.
    fn measure(&mut self, repetitions: usize, mut queue: impl FnMut(&mut Self, usize)) -> f64 {
        let before = self.used();
        for first in (0..repetitions).step_by(BATCH) {
            (first..repetitions.min(first + BATCH)).for_each(|number| queue(self, number));
            let answers = self.connection.answers();
            assert!(!answers.iter().any(|answer| matches!(answer, Value::Error(_) | Value::Nil)), "{:?}", answers[0]);
        }
        (self.used() - before) * 1e6 / repetitions as f64
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn an_uncontended_pair_costs_at_most_three_plain_ones() {
    let Some(server) = Server::start("an_uncontended_pair_costs_at_most_three_plain_ones") else { return };
    let (mut bench, codec, client) = (Bench::new(server), Codec::new(Keys::default(), Limits::default()), client(2));
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(bench.measure(PAIRS, |bench, number| {
            let key = format!("plain:order:{}", number % NAMES);
            let [set, unset] = bench.plain.clone();
            let value = b"0123456789abcdef0123456789abcdef";
            bench.connection.queue::<&[u8]>(&[b"EVALSHA", &set, b"1", key.as_bytes(), value, b"30000"]);
            bench.connection.queue::<&[u8]>(&[b"EVALSHA", &unset, b"1", key.as_bytes(), value]);
        }));
        let not_after = bench.millis() + 60_000;
        ours.push(bench.measure(PAIRS, |bench, number| {
            let (name, claim) = (name(number % NAMES), claim(&client, not_after));
            let id = claim.id;
            bench.queue(&codec.call(&name, &Op::Acquire(claim)));
            bench.queue(&codec.call(&name, &release(id)));
        }));
    }
    let (plain, ours) = (median(plain), median(ours));
    println!("server time per uncontended pair: {ours:.1} µs, plain {plain:.1} µs, ratio {:.2}", ours / plain);
    assert!(ours <= 3.0 * plain, "{ours} µs beside {plain} µs");
}

#[test]
fn a_handoff_costs_the_same_however_many_wait() {
    let Some(server) = Server::start("a_handoff_costs_the_same_however_many_wait") else { return };
    let (mut bench, codec) = (Bench::new(server), Codec::new(Keys::default(), Limits::default()));
    let clients: Vec<Client> = (0..8).map(client).collect();
    let mut costs = Vec::new();
    for waiters in [2, 100, 1_000, 9_000] {
        let not_after = bench.millis() + 600_000;
        let name = name(waiters);
        let mut line = std::collections::VecDeque::new();
        let mut join = |bench: &mut Bench, number: usize| {
            let claim = claim(&clients[number % clients.len()], not_after);
            let id = claim.id;
            bench.queue(&codec.call(&name, &Op::Acquire(claim)));
            id
        };
        for number in 0..=waiters {
            line.push_back(join(&mut bench, number));
        }
        bench.connection.answers();
        // Each hand-off is followed by a newcomer, so that the line stays as long as it is.
        let mut joined = waiters;
        let cost = bench.measure(2_000, |bench, _| {
            let holder = line.pop_front().expect("somebody holds");
            bench.queue(&codec.call(&name, &release(holder)));
            joined += 1;
            line.push_back(join(bench, joined));
        });
        let holder = *line.front().expect("somebody holds");
        let renew = Op::Renew(Renew { id: holder, lease: Lease::new(Duration::from_secs(30)).expect("good") });
        let answer = {
            bench.queue(&codec.call(&name, &renew));
            bench.connection.answers().pop().expect("one")
        };
        let reply = codec.reply(&renew, RunId(1), answer).expect("a reply");
        assert!(
            matches!(&reply.body, Body::Renewal(Renewal::Renewed { line, .. }) if line.waiters == u32::try_from(waiters).unwrap()),
            "{reply:?}"
        );
        println!("server time per hand-off and newcomer with {waiters} waiters: {cost:.1} µs");
        costs.push(cost);
    }
    let (least, most) =
        costs.iter().fold((f64::MAX, 0.0_f64), |(least, most), cost| (least.min(*cost), most.max(*cost)));
    assert!(most <= 2.0 * least, "from {least} to {most} µs");
}
