//! Numbers as people read them.

/// A time with three digits. `micro` is how the screen writes a millionth of a second.
pub(crate) fn length(nanos: u64, micro: &str) -> String {
    let (value, unit) = scaled(nanos, micro);
    let digits = match value {
        _ if nanos < 1_000 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{unit}")
}

/// The same for a round number, without zeros that say nothing.
pub(crate) fn round(nanos: u64, micro: &str) -> String {
    let (value, unit) = scaled(nanos, micro);
    format!("{value}{unit}")
}

fn scaled(nanos: u64, micro: &str) -> (f64, &str) {
    let value = nanos as f64;
    match nanos {
        0..1_000 => (value, "ns"),
        1_000..1_000_000 => (value / 1e3, micro),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    }
}

/// Digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds with a tenth, for JSON.
pub(crate) fn micros(nanos: u64) -> f64 {
    (nanos as f64 / 100.0).round() / 10.0
}

/// A part of a whole, in percent. What is not nothing never looks like it.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole.max(1) as f64;
    match percent {
        percent if part == 0 => format!("{percent:.0}%"),
        percent if percent < 0.1 => "<0.1%".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let all = [7, 999, 1_500, 15_820, 158_240, 1_234_567, 45_600_000, 3_000_000_000, 75_000_000_000];
        let all: Vec<String> = all.into_iter().map(|nanos| length(nanos, "µs")).collect();
        assert_eq!(all, ["7ns", "999ns", "1.50µs", "15.8µs", "158µs", "1.23ms", "45.6ms", "3.00s", "75.0s"]);
        assert_eq!(length(158_240, "us"), "158us");
    }

    #[test]
    fn round_numbers_have_no_zeros_behind() {
        let all = [8, 1_000, 1_500, 150_000, 1_200_000, 10_000_000, 8_200_000_000].map(|nanos| round(nanos, "us"));
        assert_eq!(all, ["8ns", "1us", "1.5us", "150us", "1.2ms", "10ms", "8.2s"]);
    }

    #[test]
    fn digits_come_in_groups() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn parts_are_never_less_than_they_are() {
        let of = |part: u64| percent(part, 10_000);
        assert_eq!([0, 1, 40, 950, 10_000].map(of), ["0%", "<0.1%", "0.4%", "9.5%", "100%"]);
        assert_eq!(percent(0, 0), "0%");
    }

    #[test]
    fn json_has_tenths_of_a_microsecond() {
        assert_eq!([158_249, 40].map(micros), [158.2, 0.0]);
    }
}
