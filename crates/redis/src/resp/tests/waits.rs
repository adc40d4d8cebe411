//! How the driver waits for an answer: awake for a moment, then asleep.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::driver::Driver;
use super::*;

/// A driver whose polls are counted.
struct Counted(Driver, Arc<AtomicUsize>);

impl Future for Counted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll(context)
    }
}

/// A connection that rests, its other end, and how often its driver was polled.
async fn resting() -> (RespConnection, TcpStream, Arc<AtomicUsize>) {
    let (near, far) = streams().await;
    let (connection, driver) = RespConnection::new(Stream::from(near), None);
    let polls = Arc::new(AtomicUsize::new(0));
    drop(tokio::spawn(Counted(driver, Arc::clone(&polls))));
    until_idle(&connection).await;
    (connection, far, polls)
}

fn send(connection: &RespConnection, flush: Flush) -> Pending {
    connection.send_one(flush, |out| out.extend_from_slice(&command("A").bytes))
}

#[test]
fn driver_polls_for_an_answer_while_others_run_and_then_sleeps() {
    on_a_runtime(async {
        let (mut looks, mut others) = (0, 0);
        // A machine that stands still just then leaves nothing of the moment, but not a hundred times.
        for _ in 0..100 {
            let (connection, mut far, polls) = resting().await;
            let before = polls.load(Ordering::Relaxed);
            let sent = send(&connection, Flush::Awaited);
            // Another task that is always ready.
            let other = connection.clone();
            let polled = tokio::spawn(async move {
                let mut polled = 0;
                poll_fn(|context| {
                    polled += 1;
                    context.waker().wake_by_ref();
                    if other.is_awake() { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                polled
            });
            others += polled.await.unwrap();
            let asleep = polls.load(Ordering::Relaxed);
            looks += asleep - before;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(polls.load(Ordering::Relaxed), asleep, "it sleeps");
            far.write_all(b":1\r\n").await.unwrap();
            assert_eq!(number(sent.await), 1);
        }
        assert!(looks > 200 && others > 200, "looked {looks} times, others ran {others} times");
    });
}

#[test]
fn awake_driver_reads_an_answer_before_the_runtime_reports_it() {
    on_a_runtime(async {
        let mut context = Context::from_waker(Waker::noop());
        // As above: some of a hundred.
        let mut found = 0;
        for _ in 0..100 {
            let (near, far) = streams().await;
            let (connection, mut driver) = RespConnection::new(Stream::from(near), None);
            let mut far = far.into_std().unwrap();
            assert!(Pin::new(&mut driver).poll(&mut context).is_pending());
            let mut sent = send(&connection, Flush::Awaited);
            far.write_all(b":1\r\n").unwrap();
            // Nothing is awaited here, so the runtime has not looked for news.
            while connection.is_awake() {
                assert!(Pin::new(&mut driver).poll(&mut context).is_pending());
            }
            found += usize::from(Pin::new(&mut sent).poll(&mut context).is_ready());
        }
        assert!(found > 0);
    });
}

#[test]
fn driver_sleeps_when_no_answer_is_awaited() {
    on_a_runtime(async {
        let ways: [fn(&RespConnection) -> Pending; 4] = [
            |connection| send(connection, Flush::None),
            |connection| send(connection, Flush::AtOnce),
            |connection| connection.send(&command("A")),
            |connection| connection.send(&["A", "B"].map(Command::new).into_iter().collect()),
        ];
        for way in ways {
            let (connection, _far, _) = resting().await;
            let _sent = way(&connection);
            assert!(!connection.is_awake());
        }
        let (connection, _far, _) = resting().await;
        connection.note_contention();
        let _sent = send(&connection, Flush::Awaited);
        assert!(!connection.is_awake());
    });
}

#[test]
fn driver_stays_awake_while_an_answer_is_awaited() {
    on_a_runtime(async {
        use Flush::{AtOnce, Awaited, None};
        for policies in [&[Awaited][..], &[AtOnce, Awaited], &[None, None, Awaited], &[Awaited, Awaited]] {
            let (connection, mut far, _) = resting().await;
            let sent: Vec<_> = policies.iter().map(|flush| send(&connection, *flush)).collect();
            assert!(connection.is_awake(), "{policies:?}");
            for pending in sent {
                far.write_all(b":1\r\n").await.unwrap();
                assert_eq!(number(pending.await), 1);
            }
            assert!(!connection.is_awake(), "{policies:?}");
        }
    });
}
