//! Which names are meant: a pattern, or a part of a name.

/// Text without a glob is looked for anywhere in a name.
pub(crate) fn pattern(text: &str) -> String {
    match text {
        "" => "*".to_owned(),
        text if has_glob(text) => text.to_owned(),
        text => format!("*{text}*"),
    }
}

/// What somebody would type for the pattern.
pub(crate) fn typed(pattern: &str) -> &str {
    let inner = pattern.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
    match (pattern, inner) {
        ("*", _) => "",
        (_, Some(inner)) if !has_glob(inner) && !inner.is_empty() => inner,
        _ => pattern,
    }
}

fn has_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_glob_is_looked_for_anywhere_and_typed_as_it_was() {
        for (text, meant) in [("", "*"), ("job", "*job*"), ("job*", "job*"), ("j[ao]b", "j[ao]b"), ("*job*", "*job*")] {
            assert_eq!(pattern(text), meant);
            assert_eq!(pattern(typed(meant)), meant, "what is typed again means the same");
        }
        assert_eq!([typed("*"), typed("*job*"), typed("job*"), typed("**")], ["", "job", "job*", "**"]);
    }
}
