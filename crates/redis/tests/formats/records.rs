//! What is written in which format, and what is refused.

use bandog::Locks;
use bandog_core::format::Format;
use bandog_core::holder::{Client, ClientId, Who};
use bandog_core::lease::Lease;
use bandog_core::ledger::Limits;
use bandog_core::name::LockName;
use bandog_core::op::{Body, Claim, Op, Patience, Release, Renew, Verdict};
use bandog_core::time::{LeaseTime, RunId};
use bandog_redis::{Codec, Keys, Value};
use bandog_rig::{Raw, Server, is_missing};

use crate::older::{ACQUIRE_1, Older, claim, lease};
use crate::support::{if_possible, ms};

fn name() -> LockName {
    LockName::new("a").unwrap()
}

/// The first byte of the record of [`name`], and whether it is a string.
fn first_byte(server: &Server) -> (u8, bool) {
    let kind: String = server.run("TYPE lock:a");
    let bytes = |words: &str| server.run::<Vec<u8>>(words).first().copied();
    if kind == "string" {
        return (bytes("GETRANGE lock:a 0 0").unwrap(), true);
    }
    let fields: Vec<Vec<u8>> = server.run("HKEYS lock:a");
    let field = fields.iter().find(|field| matches!(&field[..], b"f" | b"s")).unwrap();
    let first = bytes(&format!("HGET lock:a {}", String::from_utf8_lossy(field))).unwrap();
    assert_eq!(field, if first == 0 { b"s" } else { b"f" });
    (first, false)
}

/// Somebody of this build who writes this format.
struct Writer {
    connection: Raw,
    codec: Codec,
    client: Client,
}

impl Writer {
    fn new(server: &Server, format: Format) -> Self {
        let codec = Codec::with_format(Keys::default(), Limits::default(), format);
        let client = Client::new(ClientId::from_random(u128::from(format.number())), Who::default());
        Self { connection: Raw::unix(server), codec, client }
    }

    fn ask(&mut self, op: &Op) -> Body {
        let call = self.codec.call(&name(), op);
        let mut words: Vec<&[u8]> = vec![b"EVAL", call.script.text().as_bytes(), b"1", &call.key];
        words.extend(call.args.iter().map(Vec::as_slice));
        let answer = self.connection.ask(&words);
        self.codec.reply(op, RunId(1), answer).unwrap().body
    }

    fn claim(&mut self) -> Claim {
        claim(&self.client, self.connection.micros(), Patience::Queue)
    }
}

#[test]
fn records_are_written_in_the_format_of_the_writer() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let (mut two, mut three) = (Writer::new(&server, Format::OLDEST), Writer::new(&server, Format::NEWEST));
    let (first, second) = (two.claim(), three.claim());
    let renew = Op::Renew(Renew::new(first.id, lease()));
    let release = |claim: &Claim| Op::Release(Release { id: claim.id, not_after: None, again: None });
    let steps = [
        (false, Op::Acquire(first.clone()), (0, true)),
        (true, renew.clone(), (3, true)),
        (false, renew.clone(), (0, true)),
        (true, Op::Acquire(second.clone()), (3, false)),
        (false, renew.clone(), (0, false)),
        (true, renew, (3, false)),
        (false, release(&first), (0, false)),
        (true, Op::Renew(Renew::new(second.id, lease())), (3, false)),
        (false, Op::Inspect, (0, false)),
        (true, release(&second), (3, false)),
    ];
    for (by_three, op, expected) in steps {
        let writer = if by_three { &mut three } else { &mut two };
        writer.ask(&op);
        let (byte, is_string) = first_byte(&server);
        assert_eq!(byte, expected.0, "{op:?}");
        assert!(is_string == expected.1 || !expected.1, "{op:?}");
    }
}

#[test]
fn record_in_a_newer_format_is_refused_with_both_numbers_and_left_as_it_is() {
    if_possible(async {
        let server = Server::start();
        let newer = vec![4; 80];
        let text: [&[u8]; 3] = [b"SET", b"lock:a", &newer];
        let hash: [&[u8]; 6] = [b"HSET", b"lock:a", b"f", &newer, b"w1", b"x"];
        for put in [&text[..], &hash[..]] {
            server.tell("DEL lock:a");
            Raw::unix(&server).ask(put);
            let before: Vec<u8> = server.run("DUMP lock:a");
            let locks = Locks::connect(&server.url()).await.unwrap();
            let mut said = vec![
                locks.mutex("a").acquire().await.unwrap_err().to_string(),
                locks.mutex("a").try_acquire().await.unwrap_err().to_string(),
                locks.rwlock("a").read().acquire().await.unwrap_err().to_string(),
                locks.semaphore("a", 2).acquire().await.unwrap_err().to_string(),
                locks.inspect("a").await.unwrap_err().to_string(),
            ];
            // Claims of many tasks go as one.
            let many = (0..8).map(|n| locks.mutex(if n == 3 { "a".into() } else { format!("b{n}") }).try_acquire());
            let many: Vec<_> = many.map(tokio::spawn).collect();
            for (n, one) in many.into_iter().enumerate() {
                match one.await.unwrap() {
                    Err(error) => said.push(error.to_string()),
                    Ok(guard) => assert!(n != 3 && guard.is_some()),
                }
            }
            for text in said {
                assert!(text.contains("in format 4") && text.contains("formats 2 and 3"), "{text}");
                assert!(text.contains("upgrade this one") && text.contains("?format=3"), "{text}");
            }
            assert_eq!(server.run::<Vec<u8>>("DUMP lock:a"), before);
        }
    });
}

#[test]
fn build_of_format_1_grants_a_held_lock_beside_format_2_and_is_refused_beside_format_3() {
    if is_missing() {
        return;
    }
    let server = Server::start();
    let short = Lease::new(ms(300)).unwrap();
    let mut older = Older::connect(&server, 1);
    let hold = Claim { lease: short, ..older.claim(Patience::Try) };
    assert!(matches!(older.ask(&name(), &Op::Acquire(hold.clone())), Ok(Body::Verdict(Verdict::Granted(_)))));
    let renew = Renew { id: hold.id, lease: short, started: LeaseTime::from_millis(1) };
    let mut other = Older::connect(&server, 2);
    let grants = |other: &mut Older| {
        let claim = Op::Acquire(other.claim(Patience::Try));
        let call = Codec::with_format(Keys::default(), Limits::default(), Format::OLDEST).call(&name(), &claim);
        other.eval(ACQUIRE_1, &call)
    };
    // Renewed among many, so that the record itself shows the end that it had at first.
    let renewed_past = |older: &mut Older| {
        for _ in 0..8 {
            assert!(older.renew_among_many(&name(), &renew), "the hold goes on");
            std::thread::sleep(ms(50));
        }
    };
    renewed_past(&mut older);
    assert!(matches!(grants(&mut other), Value::Bytes(_) | Value::Array(_)), "two hold it at once");

    server.tell("DEL lock:a");
    let mut three = Writer::new(&server, Format::NEWEST);
    assert!(matches!(three.ask(&Op::Acquire(Claim { lease: short, ..hold })), Body::Verdict(Verdict::Granted(_))));
    let Value::Error(text) = grants(&mut other) else { panic!("it was served") };
    assert!(text.starts_with("WRONGTYPE"), "{text}");
}
