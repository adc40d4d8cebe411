//! How connections end, and who is told.

use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::config::Address;
use crate::resp::{Broken, Command, Deadline, Endpoint, Heard, Packed};
use crate::value::Value;

use super::{MUCH, command, ends, listening, number, on_a_runtime, words};

/// A look, no longer.
const NOW: Duration = Duration::from_millis(1);

#[test]
fn at_the_end_all_are_told_and_nothing_more_is_sent() {
    for ending in ["", ":1\r\nHTTP/1.1 400 Bad Request\r\n", ":1\r\n:2", ":1\r\n$-7\r\n"] {
        on_a_runtime(async {
            let (told, heard) = channel();
            let (connection, mut far) =
                ends(Some(Box::new(move |heard| told.send(format!("{heard:?}")).is_ok()))).await;
            let (first, second) = (connection.send(&command("A")), connection.send(&command("B")));
            assert_eq!(words(&mut far, 2).await, ["A", "B"]);
            far.write_all(ending.as_bytes()).await.unwrap();
            drop(far);
            match first.await {
                Ok(answers) => assert_eq!((answers.one(), ending.is_empty()), (Value::Int(1), false)),
                Err(broken) => assert!(ending.is_empty(), "{broken}"),
            }
            let broken = second.await.unwrap_err();
            let is_garbage = ending.contains("HTTP") || ending.contains('$');
            assert_eq!(matches!(broken, Broken::Garbage(_)), is_garbage, "{ending:?}: {broken}");
            assert!(!matches!(broken, Broken::Unsent), "it was sent");
            assert!(connection.is_gone());
            assert!(matches!(connection.send(&command("C")).await, Err(Broken::Unsent)), "nothing was sent");
            assert_eq!(heard.try_iter().collect::<Vec<_>>(), ["Gone"], "{ending:?}");
        });
    }
}

#[test]
fn an_answer_to_nothing_ends_it() {
    for told in ["-ERR max number of clients reached\r\n", "+HELLO\r\n"] {
        on_a_runtime(async {
            let (connection, mut far) = ends(None).await;
            far.write_all(told.as_bytes()).await.unwrap();
            while !connection.is_gone() {
                tokio::task::yield_now().await;
            }
            assert!(matches!(connection.send(&command("A")).await, Err(Broken::Unsent)));
        });
    }
}

#[test]
fn connection_ends_without_senders_and_waiters() {
    on_a_runtime(async {
        let (handler, heard) = listening();
        let (connection, mut far) = ends(handler).await;
        let (other, pending) = (connection.clone(), connection.send(&command("A")));
        drop(connection);
        assert_eq!(words(&mut far, 1).await, ["A"]);
        drop(other);
        tokio::task::yield_now().await;
        assert!(heard.try_recv().is_err(), "somebody waits");
        far.write_all(b":1\r\n").await.unwrap();
        assert_eq!(number(pending.await), 1);
        assert_eq!(far.read(&mut [0; 9]).await.unwrap(), 0, "it is closed");
        assert!(matches!(heard.recv().unwrap(), Heard::Gone));
    });
}

#[test]
fn connection_without_waiters_ends_once_all_is_written() {
    on_a_runtime(async {
        let (connection, mut far) = ends(None).await;
        let much: Packed = Command::new("MUCH").arg(vec![b'x'; MUCH]).into();
        drop(connection.send(&much));
        drop(connection);
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.unwrap();
        assert!(bytes == much.bytes, "{} of {} bytes", bytes.len(), much.bytes.len());
    });
}

#[test]
fn an_opening_that_is_given_up_leaves_nothing() {
    on_a_runtime(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::new(Address::Tcp(address.ip().to_string(), address.port())).login(None, None, 3);
        let mut opening = Box::pin(async { endpoint.open(None, &Deadline::within(Duration::from_secs(60))).await });
        let (mut far, mut bytes) = (None, Vec::new());
        while bytes.is_empty() {
            assert!(opening.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            match &mut far {
                None => far = tokio::time::timeout(NOW, listener.accept()).await.ok().map(|far| far.unwrap().0),
                Some(far) => drop(tokio::time::timeout(NOW, far.read_buf(&mut bytes)).await),
            }
        }
        drop(opening);
        far.unwrap().read_to_end(&mut bytes).await.unwrap();
        assert_eq!(
            bytes,
            b"*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$6\r\nbandog\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
        );
    });
}

#[test]
fn connection_ends_with_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (handler, heard) = listening();
    let (connection, far, pending) = runtime.block_on(async {
        let (connection, mut far) = ends(handler).await;
        let pending = connection.send(&command("A"));
        assert_eq!(words(&mut far, 1).await, ["A"]);
        (connection, far, pending)
    });
    drop((far, runtime));
    assert!(matches!(heard.try_iter().collect::<Vec<_>>()[..], [Heard::Gone]));
    assert!(connection.is_gone());
    on_a_runtime(async move {
        assert!(matches!(pending.await, Err(Broken::Io(_))), "it was sent");
        assert!(matches!(connection.send(&command("B")).await, Err(Broken::Unsent)));
    });
}

#[test]
fn an_ear_that_panics_ends_it() {
    on_a_runtime(async {
        let (connection, mut far) = ends(Some(Box::new(|heard| {
            assert!(matches!(heard, Heard::Gone), "as it should");
            true
        })))
        .await;
        let pending = connection.send(&command("A"));
        far.write_all(b">3\r\n+message\r\n+a\r\n+b\r\n:1\r\n").await.unwrap();
        assert!(pending.await.is_err());
        assert!(connection.is_gone());
    });
}

#[test]
fn connection_that_is_given_up_is_closed_though_answers_are_owed() {
    on_a_runtime(async {
        let (wire, mut far) = ends(None).await;
        let (told, mut heard) = tokio::sync::oneshot::channel();
        wire.send(&command("A")).then(move |answers| drop(told.send(answers)));
        assert_eq!(words(&mut far, 1).await, ["A"]);
        assert!(heard.try_recv().is_err(), "the server is silent");
        wire.give_up();
        assert!(matches!(heard.await.unwrap(), Err(Broken::Io(_))), "it was sent");
        assert_eq!(far.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        assert!(matches!(wire.send(&command("B")).await, Err(Broken::Unsent)));
    });
}
