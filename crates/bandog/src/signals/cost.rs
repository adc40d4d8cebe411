//! What one uncontended pair tells, and nothing else: for the benchmark that weighs it (`benches/signals.rs`).

use std::hint::black_box;
use std::time::Duration;

use bandog_core::lock::How;
use bandog_core::mode::Mode;
use bandog_core::name::LockName;
use bandog_core::token::Token;

use super::{About, detailed};
use crate::Locks;

impl Locks {
    /// Gives the signals of one acquire and release of a free lock, without the lock. For the benchmark.
    #[doc(hidden)]
    pub fn tell_of_a_pair(&self, lock: &LockName) {
        let signals = self.signals();
        let about = About { lock: black_box(lock), token: black_box(Token::from_u64(7)), holder: None };
        let time = black_box(Duration::from_nanos(700));
        // The span of the ask; whether it waits; the span of the hold; the holder at the release.
        for _ in 0..4 {
            black_box(detailed());
        }
        signals.attempted(black_box(Mode::Exclusive), about.lock);
        signals.granted(&about, black_box(How::AtOnce), time);
        signals.held(about.lock, time);
    }
}
