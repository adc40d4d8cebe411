//! A connection and the other end of it, played by the test: order, places in the line, and pushes. [`batches`],
//! [`endings`], [`waits`] and [`writers`] have the rest.

mod batches;
mod endings;
mod waits;
mod writers;

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::value::Value;

use super::driver::PushHandler;
use super::socket::Stream;
use super::{Answers, Broken, Command, Flush, Heard, IMPATIENT, Packed, Pending, RespConnection};

/// More than the buffers of a socket hold.
const MUCH: usize = 16 << 20;

fn on_a_runtime(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        tokio::time::timeout(Duration::from_secs(20), test).await.expect("within twenty seconds");
    });
}

async fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, _) = listener.accept().await.unwrap();
    (near, far)
}

async fn ends(handler: Option<PushHandler>) -> (RespConnection, TcpStream) {
    let (near, far) = streams().await;
    let (connection, driver) = RespConnection::new(Stream::from(near), handler);
    drop(tokio::spawn(driver));
    (connection, far)
}

fn command(word: &str) -> Packed {
    Command::new(word).into()
}

fn number(answered: Result<Answers, Broken>) -> i64 {
    match answered.unwrap() {
        Answers::One(Value::Int(number)) => number,
        other => panic!("{other:?}"),
    }
}

/// Waits until all is answered and the driver rests.
async fn until_idle(connection: &RespConnection) {
    while !connection.is_idle() {
        tokio::task::yield_now().await;
    }
}

/// Reads from the other end until so many commands of one word have come.
async fn words(far: &mut TcpStream, count: usize) -> Vec<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let words: Vec<_> = text.split("\r\n").skip(2).step_by(3).map(str::to_owned).collect();
        if words.len() == count && text.ends_with("\r\n") {
            return words;
        }
        assert_ne!(far.read_buf(&mut bytes).await.unwrap(), 0, "{text:?}");
    }
}

#[test]
fn commands_and_answers_keep_their_order() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        // The first ones of them before the driver has begun, the others while those are under way.
        let mut sent: Vec<Pending> = (0..5).map(|at| connection.send(&command(&format!("A{at}")))).collect();
        assert_eq!(words(&mut far, 5).await, ["A0", "A1", "A2", "A3", "A4"]);
        sent.extend((0..5).map(|at| {
            connection.send_one(Flush::None, |out| {
                out.extend_from_slice(&command(&format!("B{at}")).bytes);
            })
        }));
        assert_eq!(words(&mut far, 5).await, ["B0", "B1", "B2", "B3", "B4"]);
        far.write_all(b":0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n").await.unwrap();
        far.write_all(b":7\r\n:8\r\n:9\r\n").await.unwrap();
        for (place, pending) in (0..).zip(sent) {
            assert_eq!(number(pending.await), place);
        }
    });
}

#[test]
fn command_sent_at_once_is_written_by_its_caller_with_the_buffer() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let under_way = connection.send(&command("A"));
        assert_eq!(words(&mut far, 1).await, ["A"]);
        let now = crate::clock::now();
        assert!(connection.is_writable(now));
        assert!(!connection.is_writable(now + 2 * IMPATIENT), "it was asked, and says nothing");
        // From here on the driver does not run.
        let mut far = far.into_std().unwrap();
        far.set_nonblocking(false).unwrap();
        let send = |word: &str, flush| connection.send_one(flush, |out| out.extend_from_slice(&command(word).bytes));
        let sent = [send("B", Flush::None), send("C", Flush::AtOnce)];
        let mut bytes = vec![0; command("B").bytes.len() + command("C").bytes.len()];
        far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        far.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [command("B").bytes, command("C").bytes].concat());
        far.write_all(b":1\r\n:2\r\n:3\r\n").unwrap();
        assert_eq!(number(under_way.await), 1);
        for (answer, pending) in (2..).zip(sent) {
            assert_eq!(number(pending.await), answer);
        }
    });
}

#[test]
fn commands_sent_together_are_answered_together() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let three = ["A", "B", "C"].map(Command::new).into_iter().collect();
        let (three, one) = (connection.send(&three), connection.send(&command("D")));
        far.write_all(b":1\r\n-ERR no\r\n").await.unwrap();
        far.write_all(b"_\r\n:4\r\n").await.unwrap();
        assert_eq!(number(one.await), 4);
        assert_eq!(three.await.unwrap().list(), [Value::Int(1), Value::Error("ERR no".into()), Value::Nil]);
        assert!(connection.send(&Packed::default()).await.unwrap().list().is_empty());
    });
}

#[test]
fn slot_of_a_gone_caller_keeps_its_place() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        drop(connection.send(&command("A")));
        let (second, _) = (connection.send(&command("B")), connection.send(&command("C")));
        let fourth = connection.send(&command("D"));
        assert_eq!(words(&mut far, 4).await, ["A", "B", "C", "D"]);
        far.write_all(b":1\r\n:2\r\n:3\r\n:4\r\n").await.unwrap();
        assert_eq!((number(second.await), number(fourth.await)), (2, 4));
    });
}

#[test]
fn more_than_a_socket_takes_arrives_whole_and_in_order() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        connection.send(&command("WARM"));
        assert_eq!(words(&mut far, 1).await, ["WARM"]);
        far.write_all(b"+OK\r\n").await.unwrap();
        tokio::task::yield_now().await;
        let much = Command::new("MUCH").arg(vec![b'x'; MUCH]).into();
        let sent = [connection.send(&much), connection.send(&command("LAST")), connection.send(&much)];
        let expected = [&much.bytes[..], &command("LAST").bytes, &much.bytes].concat();
        let mut bytes = vec![0; expected.len()];
        far.read_exact(&mut bytes).await.unwrap();
        assert!(bytes == expected, "torn or out of order");
        let long = [format!("${MUCH}\r\n").as_bytes(), &vec![b'y'; MUCH], b"\r\n:2\r\n:3\r\n"].concat();
        far.write_all(&long).await.unwrap();
        let [first, second, third] = sent;
        assert_eq!((number(second.await), number(third.await)), (2, 3));
        assert_eq!(first.await.unwrap().one(), Value::Bytes(vec![b'y'; MUCH]));
    });
}

#[test]
fn no_command_overtakes_bytes_being_written() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        // So much that the socket is full to the end, however large it grows.
        let much = Command::new("MUCH").arg(vec![b'x'; 2 * MUCH]).into();
        // Answered before it has come: for all that the line knows, nothing is under way.
        let (mut pending, mut expected, mut bytes) = (connection.send(&much), much.bytes.clone(), Vec::new());
        for length in [1, 20_000, 1, 20_000] {
            far.write_all(b":1\r\n").await.unwrap();
            assert_eq!(number(pending.await), 1);
            // The driver may have read before it wrote; soon the socket takes no more.
            while connection.is_writable(crate::clock::now()) {
                tokio::task::yield_now().await;
            }
            // There is room again, and the next one finds it before the driver does.
            let mut some = vec![0; 2 << 20];
            far.read_exact(&mut some).await.unwrap();
            bytes.append(&mut some);
            tokio::task::yield_now().await;
            let last = Command::new("LAST").arg(vec![b'y'; length]).into();
            pending = connection.send(&last);
            expected.extend_from_slice(&last.bytes);
        }
        let mut rest = vec![0; expected.len() - bytes.len()];
        far.read_exact(&mut rest).await.unwrap();
        bytes.append(&mut rest);
        assert!(bytes == expected, "torn or out of order");
    });
}

#[test]
fn answers_that_come_torn_are_read_whole() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        for at in 0..5_000 {
            sent.push(connection.send(&command("A")));
            answers.extend_from_slice(format!("$37\r\n{at:x<37}\r\n").as_bytes());
        }
        far.write_all(&answers).await.unwrap();
        for (at, pending) in sent.into_iter().enumerate() {
            assert_eq!(pending.await.unwrap().one(), Value::Bytes(format!("{at:x<37}").into_bytes()));
        }
    });
}

#[test]
fn waker_of_a_gone_caller_is_dropped() {
    on_a_runtime(async {
        let (connection, _far) = ends(None).await;
        let task = Arc::new(Unpark(std::thread::current()));
        let mut pending = connection.send(&command("A"));
        let waker = Waker::from(Arc::clone(&task));
        assert!(std::pin::pin!(&mut pending).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        assert_eq!(Arc::strong_count(&task), 2);
        drop(pending);
        assert_eq!(Arc::strong_count(&task), 1);
    });
}

/// What a handler was told.
fn listening() -> (Option<PushHandler>, Receiver<Heard>) {
    let (tell, heard) = channel();
    (Some(Box::new(move |told| tell.send(told).is_ok())), heard)
}

#[test]
fn pushes_go_to_the_ear_and_confirmations_to_those_who_asked() {
    on_a_runtime(async {
        let (handler, heard) = listening();
        let (connection, mut far) = ends(handler).await;
        let subscribed = connection.send(&["S", "S"].map(Command::new).into_iter().collect());
        let pinged = connection.send(&command("PING"));
        far.write_all(b">3\r\n+subscribe\r\n+a\r\n:1\r\n>3\r\n+message\r\n+a\r\n+one\r\n").await.unwrap();
        far.write_all(b">2\r\n+invalidate\r\n_\r\n>0\r\n>4\r\n+pmessage\r\n+*\r\n+a\r\n+two\r\n-NOPERM no\r\n:5\r\n")
            .await
            .unwrap();
        let answers = subscribed.await.unwrap().list();
        assert!(matches!(&answers[..], [Value::Array(_), Value::Error(_)]), "{answers:?}");
        assert_eq!(number(pinged.await), 5);
        let heard: Vec<_> = heard.try_iter().collect();
        assert!(
            matches!(&heard[..], [Heard::Message(one), Heard::Matched(two)] if one.len() == 2 && two.len() == 3),
            "{heard:?}"
        );
    });
}

/// Sends again on the same connection where it is woken, as requests do that are polled there and then.
struct Again {
    connection: RespConnection,
    sent: Mutex<Vec<Pending>>,
}

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        let pending = self.connection.send(&command("AGAIN"));
        self.sent.lock().unwrap().push(pending);
    }
}

#[test]
fn nothing_is_locked_while_somebody_is_woken() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let again = Arc::new(Again { connection: connection.clone(), sent: Mutex::default() });
        let mut first: Vec<_> = (0..3).map(|_| connection.send(&command("A"))).collect();
        let waker = Waker::from(Arc::clone(&again));
        for pending in &mut first {
            assert!(std::pin::pin!(pending).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(words(&mut far, 3).await, ["A"; 3]);
        far.write_all(b":1\r\n:2\r\n:3\r\n").await.unwrap();
        assert_eq!(words(&mut far, 3).await, ["AGAIN"; 3]);
        far.write_all(b":4\r\n:5\r\n:6\r\n").await.unwrap();
        let sent = std::mem::take(&mut *again.sent.lock().unwrap());
        for (place, pending) in (4..).zip(sent) {
            assert_eq!(number(pending.await), place);
        }
    });
}

#[test]
fn the_answer_goes_to_whoever_polled_last() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let mut pending = connection.send(&command("A"));
        assert!(std::pin::pin!(&mut pending).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let waits = tokio::spawn(pending);
        tokio::task::yield_now().await;
        far.write_all(b":1\r\n").await.unwrap();
        assert_eq!(number(waits.await.unwrap()), 1);
    });
}

#[test]
fn threads_that_send_at_once_are_all_answered() {
    const EACH: i64 = 500;
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let echo = tokio::spawn(async move {
            let (mut bytes, mut answered) = (Vec::new(), 0);
            while far.read_buf(&mut bytes).await.unwrap_or(0) > 0 {
                let whole = bytes.iter().rposition(|byte| *byte == b'*').map_or(0, |at| at.max(1));
                // The last one may be torn.
                let end = if bytes.ends_with(b"A\r\n") { bytes.len() } else { whole };
                let commands = bytes[..end].iter().filter(|byte| **byte == b'*').count();
                bytes.drain(..end);
                for _ in 0..commands {
                    far.write_all(format!(":{answered}\r\n").as_bytes()).await.unwrap();
                    answered += 1;
                }
            }
        });
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let connection = connection.clone();
                std::thread::spawn(move || {
                    let mut last = -1;
                    for _ in 0..EACH {
                        let mut pending = connection.send(&command("A"));
                        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                        let answered = loop {
                            match std::pin::pin!(&mut pending).poll(&mut Context::from_waker(&waker)) {
                                Poll::Ready(answered) => break answered,
                                Poll::Pending => std::thread::park(),
                            }
                        };
                        let place = number(answered);
                        assert!(place > last, "{place} after {last}");
                        last = place;
                    }
                })
            })
            .collect();
        for thread in threads {
            tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
        }
        drop(connection);
        echo.await.unwrap();
    });
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
