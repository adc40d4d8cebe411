//! Answers that our scripts never give, and secrets that must not leave.

use std::sync::Arc;

use bandog_core::holder::{ClientId, Who};
use bandog_core::lease::{self, Lease};
use bandog_core::mode::Mode;
use bandog_core::op::{Claim, Heartbeat, Line, News, Patience, Release, Renew, Revoke, Upgrade};
use bandog_core::time::LeaseTime;
use bandog_core::token::Stamp;

use super::*;

const SECRET: u128 = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;

fn codec() -> Codec {
    Codec::new(Keys::default(), Limits::default())
}

fn claim() -> Claim {
    let client = ClientId::from_random(SECRET);
    Claim {
        id: client.holder(9),
        inbox: client.inbox(),
        who: Arc::new(Who { host: "h".into(), pid: 1, label: "l".into() }),
        mode: Mode::Shared,
        lease: Lease::new(lease::MIN).unwrap(),
        window: Duration::MAX,
        fair: false,
        patience: Patience::Queue,
        not_after: LeaseTime::FAR,
        ballot: None,
        after: None,
    }
}

fn every_op() -> Vec<Op> {
    let (claim, id) = (claim(), claim().id);
    let again = Some(Box::new(claim.clone()));
    vec![
        Op::Acquire(claim.clone()),
        Op::Renew(Renew::new(id, claim.lease)),
        Op::Heartbeat(Heartbeat { inbox: claim.inbox, ids: vec![id], alive: Duration::ZERO }),
        Op::Release(Release { id, not_after: None, again: None }),
        Op::Release(Release { id, not_after: Some(LeaseTime::ZERO), again }),
        Op::Upgrade(Upgrade { from: id, claim }),
        Op::Downgrade(id),
        Op::Revoke(Revoke { target: Target::Holder(id.public()), reason: "r".into(), by: Arc::default(), now: false }),
        Op::Inspect,
        Op::Tend,
    ]
}

#[test]
fn encoded_command_is_the_call() {
    let (codec, name) = (codec(), LockName::new("a").unwrap());
    let strings = |words: &[&[u8]]| {
        let mut out = Vec::new();
        let mut frame = crate::resp::Frame::new(&mut out);
        words.iter().for_each(|word| frame.argument(word));
        frame.done();
        out
    };
    let expect = |call: Call, how: How, out: &[u8]| {
        let digest = sha1_smol::Sha1::from(call.script.text()).digest().to_string();
        let (word, script) = match how {
            How::ByDigest => ("EVALSHA", digest.as_str()),
            How::ByText => ("EVAL", call.script.text()),
        };
        let start = [word.as_bytes(), script.as_bytes(), b"1", &call.key];
        let words: Vec<&[u8]> = start.into_iter().chain(call.args.iter().map(Vec::as_slice)).collect();
        assert_eq!(out, strings(&words), "{call:?}");
    };
    for how in [How::ByDigest, How::ByText] {
        for op in every_op() {
            let mut out = Vec::new();
            codec.write(how, &name, &op, &mut out);
            expect(codec.call(&name, &op), how, &out);
        }
        let mut out = Vec::new();
        codec.write_peek(how, &name, &mut out);
        expect(codec.peek(&name), how, &out);
    }
}

/// Short lists of all sorts of things.
fn nonsense() -> Vec<Value> {
    let words = [
        Value::Int(0),
        Value::Int(1),
        Value::Int(2),
        Value::Int(4),
        Value::Int(-1),
        Value::Int(i64::MAX),
        Value::Bytes(vec![0xff; 60]),
        Value::Bytes(Vec::new()),
        Value::Array(Vec::new()),
        Value::Array(vec![Value::Array(vec![Value::Int(1)])]),
        Value::Nil,
    ];
    let mut found: Vec<Value> = words.to_vec();
    for seed in 0..20_000_usize {
        let length = 1 + seed % 9;
        let word = |at: usize| words[(seed * 31 + at * (seed / 11 + 7)) % words.len()].clone();
        let head = [Value::Int(5), Value::Int(0)].into_iter().take(seed % 3);
        found.push(Value::Array(head.chain((0..length).map(word)).collect()));
    }
    found
}

#[test]
fn nonsense_is_an_error_and_never_a_panic() {
    let (codec, mut wrong) = (codec(), 0);
    for op in every_op() {
        for answer in nonsense() {
            wrong += u32::from(codec.reply(&op, RunId(1), answer).is_err());
        }
        assert_eq!(codec.reply(&op, RunId(1), Value::Array(Vec::new())), Err(Wrong::Nonsense("a number was expected")));
    }
    nonsense().into_iter().for_each(|answer| drop(codec.peeked(answer)));
    assert!(wrong > 150_000, "only {wrong} of 200,000 answers were found wrong");
    let refused = codec.reply(&Op::Tend, RunId(1), Value::Error("OOM command not allowed".into())).unwrap_err();
    assert_eq!(refused.word(), Some("OOM"));
}

#[test]
fn what_releases_are_answered_is_no_grant_and_a_grant_is_no_release() {
    let name = LockName::new("a").unwrap();
    for op in every_op() {
        let [grant, release] = [7, 1].map(|number: u64| {
            let packed = [5, number].into_iter().flat_map(u64::to_be_bytes).collect();
            codec().reply(&op, RunId(1), Value::Bytes(packed)).is_ok()
        });
        let goes_among_many = codec().bundled(&name, &op).is_some();
        let expected = match &op {
            Op::Acquire(_) | Op::Renew(_) => (true, false),
            Op::Release(_) if goes_among_many => (false, true),
            _ => (false, false),
        };
        assert_eq!((grant, release), expected, "{op:?}");
    }
}

#[test]
fn an_answer_that_goes_on_is_refused() {
    let renew = Op::Renew(Renew::new(claim().id, claim().lease));
    let answer = |extra: &[Value]| Value::Array([&[Value::Int(5), Value::Int(0), Value::Int(0)], extra].concat());
    assert!(codec().reply(&renew, RunId(1), answer(&[])).is_ok());
    assert!(codec().reply(&renew, RunId(1), answer(&[Value::Int(1)])).is_err());
}

#[test]
fn news_cut_short_is_an_error() {
    let codec = codec();
    let whole = [&b"\x03R"[..], &9_u64.to_be_bytes(), &3_u32.to_be_bytes(), b"why", b"lock:a"].concat();
    let push = codec.push(RunId(3), &whole).unwrap();
    assert_eq!((push.name.as_str(), push.run), ("a", RunId(3)));
    assert_eq!(push.news, News::Revoked { number: 9, reason: "why".into() });
    let numbers = [&9_u64.to_be_bytes()[..], &11_u64.to_be_bytes(), &2_u32.to_be_bytes(), &[1]].concat();
    let granted = [&b"\x03G"[..], &numbers, b"lock:a"].concat();
    let line = Line { waiters: 2, fair: true };
    let news = News::Granted { number: 9, stamp: Stamp::from_micros(11), line };
    assert_eq!(codec.push(RunId(3), &granted).unwrap().news, news);
    assert_eq!(codec.push(RunId(3), &granted[1..]).unwrap().news, news, "format 2 had no number");
    for whole in [whole, granted] {
        for length in 0..whole.len() {
            assert!(codec.push(RunId(3), &whole[..length]).is_err(), "{length}");
        }
    }
    assert!(codec.push(RunId(3), b"X").is_err());
}

#[test]
fn push_in_a_newer_format_is_refused_with_both_numbers() {
    for number in [1, 4, 31] {
        let push = [&[number][..], b"G what is to come"].concat();
        let wrong = codec().push(RunId(3), &push).unwrap_err();
        assert_eq!(wrong, Wrong::Format { what: "a push", number });
        assert!(wrong.to_string().contains(&format!("a push is in format {number}")), "{wrong}");
    }
}

#[test]
fn a_call_in_a_log_keeps_the_secret() {
    for op in every_op() {
        let shown = format!("{:?}", codec().call(&LockName::new("a").unwrap(), &op));
        assert!(shown.contains("lock:a") && shown.len() < 80, "{shown}");
    }
}
