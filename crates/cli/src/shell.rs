//! Words as a shell takes them back: for advice that people paste.

use std::ffi::OsString;

/// The word, in quotes where it needs them.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_./:@%+=,-".contains(sign);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The same for the name of a lock in a command line of ours, where a dash would begin an option.
pub(crate) fn argument(word: &str) -> String {
    if word.starts_with('-') { format!("-- {}", quoted(word)) } else { quoted(word) }
}

/// Whether a command line of ours names a store.
pub(crate) fn gives_store(args: impl Iterator<Item = OsString>) -> bool {
    let mut ours = args.take_while(|arg| arg != "--");
    ours.any(|arg| arg == "--store" || arg.as_encoded_bytes().starts_with(b"--store="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_were() {
        assert_eq!(quoted("order:1001"), "order:1001");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("x; rm -rf ~"), "'x; rm -rf ~'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(r"a\[x"), r"'a\[x'");
        assert_eq!(quoted(""), "''");
        assert_eq!(argument("-n"), "-- -n");
    }
}
