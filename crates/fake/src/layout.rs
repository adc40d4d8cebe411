//! Whether the parts of a record belong together: whatever leaves must leave nothing behind.

use crate::commands::{Fields, Held};

/// Where the summary says which numbers it has.
const LARGE: usize = 36;

pub(crate) fn check(held: &Held) -> Result<(), String> {
    let broken = match held {
        Held::Text(numbers) => {
            (!matches!(numbers.get(LARGE), Some(0 | 3))).then_some("more than a string if it has more than a hold")
        }
        Held::Hash(fields) => broken(fields),
    };
    broken.map_or(Ok(()), |rule| Err(format!("the record must have {rule}")))
}

fn broken(fields: &Fields) -> Option<&'static str> {
    let count = |letter: u8| fields.iter().filter(|(name, value)| name[0] == letter && !value.is_empty()).count();
    let [holds, index, waiters, links, inboxes] = [b'h', b'i', b'w', b'l', b'a'].map(count);
    let [marks, order, upgrades, reasons] = [b'd', b'm', b'u', b'r'].map(count);
    let [newest, oldest] = [b"f", b"s"].map(|field| fields.get(&field[..]));
    let large = newest.or(oldest).and_then(|summary| summary.get(LARGE)).copied().unwrap_or_default();
    let format = |summary: &Vec<u8>| summary.first().copied();
    let rules = [
        (index == waiters + holds, "an index entry for every waiter and every hold but the first"),
        (links <= waiters, "no links without waiters"),
        (inboxes <= waiters + upgrades, "no inbox without entries"),
        ((inboxes == 0) == (waiters + upgrades == 0), "an inbox for every entry"),
        (marks == order, "every mark in the order once"),
        (reasons <= holds + 1, "no reason without a hold"),
        (newest.is_some() != oldest.is_some(), "one summary"),
        (newest.is_none_or(|summary| format(summary) == Some(3)), "a summary of format 3 in its field"),
        (oldest.is_none_or(|summary| format(summary) == Some(0)), "a summary of format 2 in its field"),
        (large > 0 || reasons > 0, "more than a string has"),
        (fields.contains_key(&b"v"[..]) == (large == 2), "an audit where the summary says so, and nowhere else"),
    ];
    rules.into_iter().find(|(kept, _)| !kept).map(|(_, rule)| rule)
}
