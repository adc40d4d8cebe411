//! To stay in a section, or away, for about as long as was asked.

use std::time::Duration;

use peers::clock::now;

/// tokio's timer counts in milliseconds, and ends a sleep that begins right behind a tick one late: 2 ms took 3.1, where the sleeps
/// of other languages take 2.1 to 2.3. So one less is asked for.
const LATE: Duration = Duration::from_millis(1);

pub(crate) async fn stay(time: Duration) {
    if !time.is_zero() {
        // In a box: a task that still waits has no room for it.
        Box::pin(sleep(time)).await;
    }
}

/// Woken for something else, the runtime sees to its timers, too, and a sleep ends with its tick: then there is another.
async fn sleep(time: Duration) {
    let until = now() + time.as_nanos() as u64;
    tokio::time::sleep(time.saturating_sub(LATE)).await;
    while now() < until {
        tokio::time::sleep(Duration::from_nanos(1)).await;
    }
}
