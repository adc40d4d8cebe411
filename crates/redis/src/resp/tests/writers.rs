//! Callers that write, several at a time, and the driver beside them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The other end, for a thread that waits.
fn blocking(far: TcpStream) -> std::net::TcpStream {
    let far = far.into_std().unwrap();
    far.set_nonblocking(false).unwrap();
    far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    far
}

#[test]
fn command_sent_at_once_while_another_caller_writes_is_written() {
    const ROUNDS: usize = 5_000;
    on_a_runtime(async {
        let (near, far) = streams().await;
        // It never runs.
        let (connection, _driver) = RespConnection::new(Stream::from(near), None);
        let round = Arc::new(AtomicUsize::new(0));
        let threads = [(); 2].map(|()| {
            let (connection, round) = (connection.clone(), Arc::clone(&round));
            std::thread::spawn(move || {
                for begun in 1..=ROUNDS {
                    while round.load(Ordering::Acquire) < begun {
                        std::hint::spin_loop();
                    }
                    let put = |out: &mut Vec<u8>| out.extend_from_slice(&command("A").bytes);
                    drop(connection.send_one(Flush::AtOnce, put));
                }
            })
        });
        let (mut far, both) = (blocking(far), command("A").bytes.repeat(2));
        let mut bytes = vec![0; both.len()];
        for begun in 1..=ROUNDS {
            round.store(begun, Ordering::Release);
            far.read_exact(&mut bytes).expect("both are written");
            assert_eq!(bytes, both);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn while_somebody_writes_nobody_is_woken_for_what_comes() {
    on_a_runtime(async {
        let (near, _far) = streams().await;
        let (connection, _driver) = RespConnection::new(Stream::from(near), None);
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        connection.shared().lock().resting = Some(Waker::from(Arc::clone(&woken)));
        let send = |flush| {
            let put = |out: &mut Vec<u8>| out.extend_from_slice(&command("A").bytes);
            drop(connection.send_one(flush, put));
            woken.0.load(Ordering::Relaxed)
        };
        drop(connection.shared().lock().take_out(Vec::new()));
        // Its thread may be kept busy next, and the driver with it (decision 0022).
        assert_eq!([send(Flush::AtOnce), send(Flush::None)], [0, 0]);
        connection.shared().lock().put_back(Vec::new());
        assert_eq!(send(Flush::None), 1, "there is something to write");
    });
}

#[test]
fn order_is_kept_whichever_caller_writes() {
    const EACH: usize = 20_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (connection, far) = runtime.block_on(ends(None));
    let (mut far, handed_in) = (blocking(far), Arc::new(AtomicUsize::new(0)));
    let threads = [Flush::None, Flush::AtOnce, Flush::None].map(|flush| {
        let (connection, handed_in) = (connection.clone(), Arc::clone(&handed_in));
        std::thread::spawn(move || {
            for _ in 0..EACH {
                // Called in the order in which they are handed in.
                let put = |out: &mut Vec<u8>| {
                    let place = handed_in.fetch_add(1, Ordering::Relaxed);
                    out.extend_from_slice(&command(&format!("{place:08}")).bytes);
                };
                drop(connection.send_one(flush, put));
            }
        })
    });
    let mut bytes = vec![0; command("00000000").bytes.len()];
    for place in 0..3 * EACH {
        far.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, command(&format!("{place:08}")).bytes, "at {place}");
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
