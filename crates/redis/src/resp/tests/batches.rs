//! Commands that reach the other end as one: which of them, in which order, and who gets what of the answer.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::resp::awake::CONTENDED;
use crate::resp::batch::MOST;
use crate::resp::{Answers, Batchable, Pending, RespConnection};
use crate::value::Value;

use super::{command, ends, on_a_runtime};

const BATCHABLE: Batchable = Batchable { together: b"$4\r\nCALL\r\n$4\r\nmany\r\n", kind: 7, numbers: 1..3 };

/// `CALL one 1 key abcd body`, of which `bc` and the body go into a batch.
fn alone(key: &str, body: &str) -> String {
    let words = ["CALL", "one", "1", key, "abcd", body];
    words.iter().fold("*6\r\n".to_owned(), |text, word| format!("{text}${}\r\n{word}\r\n", word.len()))
}

fn batched(entries: &[(&str, &str)]) -> String {
    let length = |body: &str| ["\0", "\u{1}", "\u{2}", "\u{3}"][body.len()];
    let packed: String = entries.iter().map(|(_, body)| format!("\u{7}\0{}bc{body}", length(body))).collect();
    let keys = entries.iter().map(|(key, _)| (*key).to_owned());
    let words =
        ["CALL", "many"].map(str::to_owned).into_iter().chain([entries.len().to_string()]).chain(keys).chain([packed]);
    let head = format!("*{}\r\n", entries.len() + 4);
    words.fold(head, |text, word| format!("{text}${}\r\n{word}\r\n", word.len()))
}

fn send(connection: &RespConnection, key: &str, body: &str) -> Pending {
    connection.send_batchable(&BATCHABLE, |out| out.extend_from_slice(alone(key, body).as_bytes()))
}

/// The answer to so many: 9 for all, then a number for each.
fn answer(numbers: &[u8]) -> Vec<u8> {
    let packed = [9].iter().chain(numbers).flat_map(|number| u64::from(*number).to_be_bytes());
    let head = format!("${}\r\n", 8 * (numbers.len() + 1)).into_bytes();
    head.into_iter().chain(packed).chain(*b"\r\n").collect()
}

/// What one of them gets of it.
fn own(number: u8) -> Value {
    Value::Bytes([9, u64::from(number)].iter().flat_map(|number| number.to_be_bytes()).collect())
}

/// A connection with a command under way, and the other end, which has read it.
async fn busy() -> (RespConnection, TcpStream, Pending) {
    let (connection, mut far) = ends(None).await;
    let first = connection.send(&command("A"));
    arrive(&mut far, "*1\r\n$1\r\nA\r\n").await;
    (connection, far, first)
}

async fn arrive(far: &mut TcpStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    far.read_exact(&mut bytes).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

async fn value(pending: Pending) -> Value {
    match pending.await.unwrap() {
        Answers::One(value) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn batched_commands_are_one_call_and_each_gets_its_own_answer() {
    on_a_runtime(async {
        let (connection, mut far, first) = busy().await;
        let sent = [("k1", "x"), ("k2", "yy"), ("k3", "zzz")].map(|(key, body)| send(&connection, key, body));
        arrive(&mut far, &batched(&[("k1", "x"), ("k2", "yy"), ("k3", "zzz")])).await;
        far.write_all(&[&b"+a\r\n"[..], &answer(&[1, 0, 3])].concat()).await.unwrap();
        value(first).await;
        for (pending, expected) in sent.into_iter().zip([own(1), Value::Nil, own(3)]) {
            assert_eq!(value(pending).await, expected);
        }
    });
}

#[test]
fn batchable_command_alone_is_sent_unchanged() {
    on_a_runtime(async {
        let (connection, mut far, _first) = busy().await;
        let sent = send(&connection, "k", "x");
        arrive(&mut far, &alone("k", "x")).await;
        far.write_all(b"+a\r\n:5\r\n").await.unwrap();
        assert_eq!(value(sent).await, Value::Int(5));
        let idle = send(&connection, "k", "x");
        arrive(&mut far, &alone("k", "x")).await;
        far.write_all(b":6\r\n").await.unwrap();
        assert_eq!(value(idle).await, Value::Int(6));
    });
}

#[test]
fn command_between_batches_keeps_its_place() {
    on_a_runtime(async {
        let (connection, mut far, first) = busy().await;
        let mut sent = vec![send(&connection, "k1", "a"), send(&connection, "k2", "b")];
        sent.push(connection.send(&command("B")));
        sent.extend([send(&connection, "k3", "c"), send(&connection, "k4", "d")]);
        let middle = "*1\r\n$1\r\nB\r\n";
        arrive(
            &mut far,
            &[&batched(&[("k1", "a"), ("k2", "b")]), middle, &batched(&[("k3", "c"), ("k4", "d")])].concat(),
        )
        .await;
        far.write_all(&[&b"+a\r\n"[..], &answer(&[1, 2]), b":3\r\n", &answer(&[4, 5])].concat()).await.unwrap();
        value(first).await;
        for (pending, expected) in sent.into_iter().zip([own(1), own(2), Value::Int(3), own(4), own(5)]) {
            assert_eq!(value(pending).await, expected);
        }
    });
}

#[test]
fn no_key_stands_twice_in_one() {
    on_a_runtime(async {
        let (connection, mut far, first) = busy().await;
        let sent = [("k1", "a"), ("k2", "b"), ("k1", "c"), ("k3", "d")].map(|(key, body)| send(&connection, key, body));
        arrive(&mut far, &(batched(&[("k1", "a"), ("k2", "b")]) + &batched(&[("k1", "c"), ("k3", "d")]))).await;
        far.write_all(&[&b"+a\r\n"[..], &answer(&[1, 2]), &answer(&[3, 4])].concat()).await.unwrap();
        value(first).await;
        for (pending, expected) in sent.into_iter().zip(1..) {
            assert_eq!(value(pending).await, own(expected));
        }
    });
}

#[test]
fn a_bundle_is_bounded() {
    on_a_runtime(async {
        let (connection, mut far, _first) = busy().await;
        let keys: Vec<String> = (0..MOST + 2).map(|at| format!("k{at}")).collect();
        let _sent: Vec<_> = keys.iter().map(|key| send(&connection, key, "x")).collect();
        let entries: Vec<_> = keys.iter().map(|key| (key.as_str(), "x")).collect();
        let (most, rest) = entries.split_at(MOST);
        arrive(&mut far, &(batched(most) + &batched(rest))).await;
    });
}

#[test]
fn while_somebody_waits_for_a_lock_nothing_is_tied() {
    on_a_runtime(async {
        let (connection, mut far, _first) = busy().await;
        connection.note_contention();
        let mut sent = Vec::new();
        for at in 0..CONTENDED / 2 {
            sent.extend(["a", "b"].map(|body| send(&connection, &format!("{body}{at}"), body)));
            arrive(&mut far, &(alone(&format!("a{at}"), "a") + &alone(&format!("b{at}"), "b"))).await;
        }
        sent.extend([send(&connection, "k1", "a"), send(&connection, "k2", "b")]);
        arrive(&mut far, &batched(&[("k1", "a"), ("k2", "b")])).await;
    });
}

#[test]
fn refused_batch_is_sent_again_one_by_one() {
    on_a_runtime(async {
        let (connection, mut far, _first) = busy().await;
        let two = |at: u8| [send(&connection, "k1", "a"), send(&connection, "k2", &at.to_string())];
        let (refused, forgotten, short) = (two(1), two(2), two(3));
        let sent: Vec<String> = ["1", "2", "3"].iter().map(|at| batched(&[("k1", "a"), ("k2", at)])).collect();
        arrive(&mut far, &sent.concat()).await;
        far.write_all(&[&b"+a\r\n-NOPERM no\r\n-NOSCRIPT which\r\n"[..], &answer(&[1])].concat()).await.unwrap();
        for pending in refused {
            assert_eq!(value(pending).await, Value::Nil);
        }
        for pending in forgotten {
            assert_eq!(value(pending).await, Value::Error("NOSCRIPT which".to_owned()));
        }
        for pending in short {
            assert_eq!(value(pending).await, Value::Bytes(Vec::new()), "no answer of ours");
        }
    });
}

#[test]
fn command_with_a_large_body_is_not_batched() {
    on_a_runtime(async {
        let (connection, mut far, _first) = busy().await;
        let long = "x".repeat(1 << 16);
        let _sent =
            [("k1", "a"), ("k2", &long), ("k3", "b"), ("k4", "c")].map(|(key, body)| send(&connection, key, body));
        let expected = alone("k1", "a") + &alone("k2", &long) + &batched(&[("k3", "b"), ("k4", "c")]);
        arrive(&mut far, &expected).await;
    });
}

#[test]
fn unwritten_bytes_go_before_commands_that_came_meanwhile() {
    on_a_runtime(async {
        let (connection, mut far, _first) = busy().await;
        // Somebody has begun to write; the socket takes a part of it, and this is left.
        let rest = "GUN\r\n";
        let taken = connection.shared().lock().take_out(Vec::new());
        assert_eq!(taken, b"");
        let _sent = [("k1", "x"), ("k2", "yy")].map(|(key, body)| send(&connection, key, body));
        connection.shared().lock().put_back(rest.into());
        let third = send(&connection, "k3", "z");
        arrive(&mut far, &format!("{rest}{}{}", batched(&[("k1", "x"), ("k2", "yy")]), alone("k3", "z"))).await;
        drop(third);
    });
}

#[test]
fn callers_waiting_to_be_batched_hear_of_the_end() {
    on_a_runtime(async {
        let (connection, far, first) = busy().await;
        let sent = [send(&connection, "k1", "a"), send(&connection, "k2", "b")];
        drop(far);
        assert!(first.await.is_err());
        for pending in sent {
            assert!(pending.await.is_err());
        }
    });
}
