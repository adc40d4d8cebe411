//! How the driver waits for an answer: awake for a moment, then asleep.

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

fn send(wire: &Wire, served: Served, at_once: bool) -> Pending {
    wire.send_one(served, at_once, |out| out.extend_from_slice(&command("A").bytes))
}

#[test]
fn it_looks_for_an_answer_while_others_run_and_then_sleeps() {
    on_a_runtime(async {
        let (mut looks, mut others) = (0, 0);
        // A machine that stands still just then leaves nothing of the moment, but not a hundred times.
        for _ in 0..100 {
            let (wire, mut far, polls) = resting().await;
            let before = polls.load(Ordering::Relaxed);
            let sent = send(&wire, Served::AsItComes, false);
            while wire.is_awake() {
                others += 1;
                tokio::task::yield_now().await;
            }
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
fn an_answer_is_found_without_the_runtime() {
    on_a_runtime(async {
        for _ in 0..100 {
            let (near, far) = streams().await;
            let (stream, mut far) = (Stream::from(near), far.into_std().unwrap());
            far.write_all(b"+OK\r\n").unwrap();
            // Nothing is awaited between here and there, so nobody has told this thread of the bytes.
            let mut window = Window::default();
            while window.try_fill(&stream).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {}
            assert_eq!(window.bytes(), b"+OK\r\n");
        }
    });
}

#[test]
fn it_sleeps_where_nobody_is_in_a_hurry() {
    on_a_runtime(async {
        let ways: [fn(&Wire) -> Pending; 3] = [
            |wire| send(wire, Served::Last, false),
            |wire| send(wire, Served::AsItComes, true),
            |wire| wire.send(&["A", "B"].map(Command::new).into_iter().collect()),
        ];
        for way in ways {
            let (wire, _far, _) = resting().await;
            let _sent = way(&wire);
            assert!(!wire.is_awake());
        }
        let (wire, _far, _) = resting().await;
        wire.stand_back();
        let _sent = send(&wire, Served::AsItComes, false);
        assert!(!wire.is_awake());
        let (wire, _far, _) = resting().await;
        let _sent = send(&wire, Served::AsItComes, false);
        assert!(wire.is_awake());
    });
}
