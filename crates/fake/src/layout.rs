//! Whether the fields of a record belong together: whatever leaves must leave nothing behind.

use std::collections::BTreeMap;

/// Where the summary says which numbers it has.
const LARGE: usize = 36;

pub(crate) fn check(fields: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), String> {
    let count = |letter: u8| fields.iter().filter(|(name, value)| name[0] == letter && !value.is_empty()).count();
    let [holds, index, waiters, links, inboxes] = [b'h', b'i', b'w', b'l', b'a'].map(count);
    let [marks, order, upgrades, reasons] = [b'd', b'm', b'u', b'r'].map(count);
    let audited = fields.get(&b"s"[..]).is_some_and(|summary| summary.get(LARGE) == Some(&2));
    let rules = [
        (index == waiters + holds, "an index entry for every waiter and every hold but the first"),
        (links <= waiters, "no links without waiters"),
        (inboxes <= waiters + upgrades, "no inbox without entries"),
        ((inboxes == 0) == (waiters + upgrades == 0), "an inbox for every entry"),
        (marks == order, "every mark in the order once"),
        (reasons <= holds + 1, "no reason without a hold"),
        (fields.contains_key(&b"s"[..]), "a summary"),
        (fields.contains_key(&b"v"[..]) == audited, "an audit where the summary says so, and nowhere else"),
    ];
    let broken = rules.iter().find(|(kept, _)| !kept);
    broken.map_or(Ok(()), |(_, rule)| Err(format!("the record must have {rule}")))
}
