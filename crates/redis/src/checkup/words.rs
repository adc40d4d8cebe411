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

/// So much of the server's words is told.
const LONGEST: usize = 200;

/// The server's words on one line, without control characters. What is cut off is cut after a word, and shows it.
pub(super) fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|character| !character.is_control()).collect();
    let Some((end, _)) = text.char_indices().nth(LONGEST) else { return text };
    let start = &text[..end];
    let start = start.rsplit_once(' ').map_or(start, |(words, _)| words);
    format!("{} …", start.trim_end_matches([' ', ',', ';', '.']))
}

/// What to do about a refusal, by its first word: the line, or the check that has it.
pub(super) fn remedy(text: &str) -> &'static str {
    match text.split_whitespace().next().unwrap_or_default() {
        "BUSY" => "SCRIPT KILL (a script that has written already cannot be killed: wait for it)",
        "LOADING" => "wait until it has loaded its data (INFO persistence tells how long that takes)",
        "MASTERDOWN" | "READONLY" => "see role",
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" => "see mode",
        "NOREPLICAS" => "see replication",
        "MISCONF" => "see saving",
        "OOM" => "see memory",
        "NOAUTH" | "WRONGPASS" | "DENIED" => "see login",
        "NOPERM" => "see permissions",
        LOST => "see latency; then examine it again",
        _ => "look in the log of the server; docs/redis.md has what its refusals mean",
    }
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

    #[test]
    fn long_words_of_the_server_are_cut_after_a_word() {
        let long = "MISCONF ".to_owned() + &"configured, ".repeat(3) + &"configured ".repeat(30);
        let told = plain(&long);
        assert!(told.ends_with(" configured …"), "{told}");
        assert!(told.chars().count() <= LONGEST + 2, "{told}");
        assert_eq!(plain(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(plain(&"é".repeat(201)), "é".repeat(200) + " …");
    }

    #[test]
    fn a_refusal_leads_to_the_line_or_to_the_check_that_has_it() {
        for (text, told) in [
            ("BUSY Redis is busy running a script.", "SCRIPT KILL"),
            ("LOADING Redis is loading the dataset in memory", "wait until"),
            ("MASTERDOWN Link with MASTER is down", "see role"),
            ("READONLY You can't write against a read only replica.", "see role"),
            ("MOVED 866 127.0.0.1:7001", "see mode"),
            ("NOREPLICAS Not enough good replicas to write.", "see replication"),
            ("MISCONF Redis is configured to save RDB snapshots", "see saving"),
            ("OOM command not allowed", "see memory"),
            ("NOPERM this user has no permissions", "see permissions"),
            ("LOST no answer in time", "see latency"),
            ("ERR unknown command", "docs/redis.md"),
        ] {
            assert!(remedy(text).contains(told), "{text}: {}", remedy(text));
        }
        for check in ["role", "mode", "replication", "saving", "memory", "login", "permissions", "latency"] {
            assert!(crate::checkup::CHECKS.iter().any(|known| known.about == check), "{check}");
        }
    }
}
