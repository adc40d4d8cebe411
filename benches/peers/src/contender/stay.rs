//! To stay in a section, or away, for about as long as was asked.

use std::time::Duration;

/// tokio's timer counts in milliseconds, and ends a sleep that begins right behind a tick one late: 2 ms took 3.1, where the sleeps
/// of other languages take 2.1 to 2.3. So one less is asked for.
const LATE: Duration = Duration::from_millis(1);

pub(crate) async fn stay(time: Duration) {
    if !time.is_zero() {
        let asked = time.saturating_sub(LATE).max(Duration::from_nanos(1));
        // In a box: a task that still waits has no room for it.
        Box::pin(tokio::time::sleep(asked)).await;
    }
}
