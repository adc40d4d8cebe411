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

/// A wire that rests, its other end, and how often its driver was polled.
async fn resting() -> (Wire, TcpStream, Arc<AtomicUsize>) {
    let (near, far) = streams().await;
    let (wire, driver) = Wire::new(Stream::from(near), None);
    let polls = Arc::new(AtomicUsize::new(0));
    drop(tokio::spawn(Counted(driver, Arc::clone(&polls))));
    until_idle(&wire).await;
    (wire, far, polls)
}

fn send(wire: &Wire, haste: Haste) -> Pending {
    wire.send_one(haste, |out| out.extend_from_slice(&command("A").bytes))
}

#[test]
fn it_looks_for_an_answer_while_others_run_and_then_sleeps() {
    on_a_runtime(async {
        let (mut looks, mut others) = (0, 0);
        // A machine that stands still just then leaves nothing of the moment, but not a hundred times.
        for _ in 0..100 {
            let (wire, mut far, polls) = resting().await;
            let before = polls.load(Ordering::Relaxed);
            let sent = send(&wire, Haste::Awaited);
            // Another task that is always ready.
            let other = wire.clone();
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
fn it_reads_an_answer_of_which_the_runtime_has_not_told_it() {
    on_a_runtime(async {
        let mut context = Context::from_waker(Waker::noop());
        // As above: some of a hundred.
        let mut found = 0;
        for _ in 0..100 {
            let (near, far) = streams().await;
            let (wire, mut driver) = Wire::new(Stream::from(near), None);
            let mut far = far.into_std().unwrap();
            assert!(Pin::new(&mut driver).poll(&mut context).is_pending());
            let mut sent = send(&wire, Haste::Awaited);
            far.write_all(b":1\r\n").unwrap();
            // Nothing is awaited here, so the runtime has not looked for news.
            while wire.is_awake() {
                assert!(Pin::new(&mut driver).poll(&mut context).is_pending());
            }
            found += usize::from(Pin::new(&mut sent).poll(&mut context).is_ready());
        }
        assert!(found > 0);
    });
}

#[test]
fn it_sleeps_where_nobody_is_in_a_hurry() {
    on_a_runtime(async {
        let ways: [fn(&Wire) -> Pending; 4] = [
            |wire| send(wire, Haste::None),
            |wire| send(wire, Haste::AtOnce),
            |wire| wire.send(&command("A")),
            |wire| wire.send(&["A", "B"].map(Command::new).into_iter().collect()),
        ];
        for way in ways {
            let (wire, _far, _) = resting().await;
            let _sent = way(&wire);
            assert!(!wire.is_awake());
        }
        let (wire, _far, _) = resting().await;
        wire.stand_back();
        let _sent = send(&wire, Haste::Awaited);
        assert!(!wire.is_awake());
    });
}

#[test]
fn it_stays_awake_while_somebody_waits_whatever_else_is_under_way() {
    on_a_runtime(async {
        use Haste::{AtOnce, Awaited, None};
        for hastes in [&[Awaited][..], &[AtOnce, Awaited], &[None, None, Awaited], &[Awaited, Awaited]] {
            let (wire, mut far, _) = resting().await;
            let sent: Vec<_> = hastes.iter().map(|haste| send(&wire, *haste)).collect();
            assert!(wire.is_awake(), "{hastes:?}");
            for pending in sent {
                far.write_all(b":1\r\n").await.unwrap();
                assert_eq!(number(pending.await), 1);
            }
            assert!(!wire.is_awake(), "{hastes:?}");
        }
    });
}
