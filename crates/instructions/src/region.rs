//! The one place whose instructions count: whatever runs inside [`counted`], on its thread.
//!
//! [Hot paths](crate::paths) call [`rounds`]; [callgrind](crate::callgrind) is told the name of [`counted`].

use std::hint::black_box;

/// Rounds of a hot path that are counted. Once in a while things happen (a list grows, a wheel turns): among so many they are
/// a part of the figure and not an accident.
pub(crate) const ROUNDS: usize = 1_000;

/// Plays a hot path twice, the first time for tables and lists to find their sizes. What a round consumes is made before.
pub(crate) fn rounds<T>(make: impl FnMut() -> T, mut round: impl FnMut(T)) {
    let mut inputs = std::iter::repeat_with(make);
    let warm: Vec<T> = inputs.by_ref().take(ROUNDS).collect();
    warm.into_iter().for_each(&mut round);
    let mut inputs = inputs.take(ROUNDS).collect::<Vec<T>>().into_iter();
    counted(&mut || inputs.by_ref().for_each(&mut round));
}

/// Callgrind begins to count where this is entered and stops where it is left.
#[inline(never)]
fn counted(body: &mut dyn FnMut()) {
    body();
    // The call above must not be the last thing here, or it would be a jump out of the region.
    black_box(());
}
