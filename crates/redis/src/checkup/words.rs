//! Sizes, shares and the server's own words, as remarks show them.

/// What an answer of our own begins with, where the server gave none.
pub(super) const LOST: &str = "LOST";

/// Bytes, roughly.
pub(super) fn bytes(count: u64) -> String {
    let units = [(30, "GB"), (20, "MB"), (10, "kB")];
    match units.into_iter().find(|(shift, _)| count >> shift > 0) {
        Some((shift, unit)) => {
            let tenths = (u128::from(count) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{count} bytes"),
    }
}

/// A part of a whole, in hundredths.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// The server's words on one line, without control characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(200).collect()
}

/// What is said of a question that was refused, or had no answer.
pub(super) fn refusal(word: &str, text: &str) -> String {
    match text.strip_prefix(LOST) {
        Some(why) => format!("{word} has no answer:{}", plain(why)),
        None => format!("{word} is refused ({})", plain(text)),
    }
}

/// Bytes as text, without control characters.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (count, told) in [(12, "12 bytes"), (1_536, "1.5 kB"), (268_435_456, "256.0 MB"), (3 << 30, "3.0 GB")] {
            assert_eq!(bytes(count), told);
        }
        assert_eq!((percent(1, 3), percent(1, 0), percent(u64::MAX, u64::MAX)), (33, 100, 100));
        assert_eq!(plain("a\r\nb\x1b[31m"), "ab[31m");
    }
}
