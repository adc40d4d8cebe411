//! Bytes of a server: whole and in pieces they tell the same.

use bandog_redis::fuzzing::stream;

/// The first byte says how long the pieces are.
///
/// # Panics
/// When pieces tell something else than the whole.
pub fn resp(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let piece = usize::from(*piece).max(1);
    let whole = stream(bytes, []);
    let pieces = stream(bytes, std::iter::repeat_n(piece, bytes.len().div_ceil(piece)));
    // Why it is none may be found sooner or later.
    assert_eq!(whole.ok(), pieces.ok(), "in pieces of {piece}");
}
