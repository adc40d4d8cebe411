//! Words that were most likely meant.

/// The word that takes the fewest letters to change into, if it takes few.
pub(crate) fn nearest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let few = if word.len() < 5 { 1 } else { 2 };
    let apart = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    among.map(|known| (apart(known), known)).filter(|(apart, _)| *apart <= few).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_near_and_another_word_is_not() {
        let among = || ["run", "renew", "release", "ls", "top"].into_iter();
        assert_eq!(nearest("rn", among()), Some("run"));
        assert_eq!(nearest("RUNN", among()), Some("run"));
        assert_eq!(nearest("relaese", among()), Some("release"));
        assert_eq!(nearest("lock", among()), None);
    }
}
