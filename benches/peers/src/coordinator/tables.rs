//! The tables of bars, misses and wins, for the page and for its summary elsewhere.

use std::fmt::Write;

use crate::record::{Played, Record};
use crate::target::Target;
use crate::targets;
use crate::wins::Win;

/// Every bar that was asked for, with its verdict.
pub(crate) fn bars(page: &mut String, record: &Record) {
    page.push_str("| | | bar | median | smallest to largest | verdict |\n|---|---|---|---|---|---|\n");
    for target in targets::asked(record) {
        let Target { letter, what, .. } = &target;
        let (bar, shown, spread, verdict) = (target.bar(), target.shown(), target.spread(), target.verdict());
        let _ = writeln!(page, "| ({letter}) | {what} | {bar} | {shown} | {spread} | {verdict} |");
    }
}

/// A part of its own: every bar that was missed, and what the floors have there.
pub(crate) fn missed(page: &mut String, record: &Record) {
    page.push_str("\n### What was missed\n\n");
    let missed = targets::missed(record);
    if missed.is_empty() {
        page.push_str("Nothing of what was played.\n");
        return;
    }
    page.push_str(
        "Beside each, what floors have there by the same measure, in the same rounds, handing over as often: clients that sleep \
         until they are told, with and without a lock. They are no lower bound: what bandog takes beyond the best of them is its \
         own, and where none of them reaches the bar, nobody who sleeps until then has been seen to, on that machine.\n\n",
    );
    page.push_str("| | | bar | bandog | floors | reached by |\n|---|---|---|---|---|---|\n");
    for target in missed {
        let Target { letter, what, .. } = &target;
        let (bar, own, floors, by) = (target.bar(), target.own(), target.floors(), target.reached_by());
        let _ = writeln!(page, "| ({letter}) | {what} | {bar} | {own} | {floors} | {by} |");
    }
}

/// What was played, of which commit, where, and how often.
pub(crate) fn played(page: &mut String, record: &Record) {
    page.push_str(
        "| scenario | commit | machine | minutes | runs kept | dropped | without figures |\n|---|---|---|---|---|---|---|\n",
    );
    for played in &record.scenarios {
        let Played { id, commit, machine, took_seconds, cells, .. } = played;
        let minutes = took_seconds / 60.0;
        let kept: usize = cells.iter().map(|cell| cell.kept.len()).sum();
        let dropped: usize = cells.iter().map(|cell| cell.dropped.len()).sum();
        let without: Vec<&str> =
            cells.iter().filter(|cell| cell.kept.is_empty()).map(|cell| cell.contender.as_str()).collect();
        let _ = writeln!(
            page,
            "| `{id}` | `{commit}` | {machine} | {minutes:.0} | {kept} | {dropped} | {} |",
            without.join(", ")
        );
    }
}

/// What was not asked for, without a verdict.
pub(crate) fn beside(page: &mut String, record: &Record) {
    page.push_str("| | | median | smallest to largest |\n|---|---|---|---|\n");
    for target in targets::beside(record) {
        let Target { letter, what, .. } = &target;
        let _ = writeln!(page, "| ({letter}) | {what} | {} | {} |", target.shown(), target.spread());
    }
}

pub(crate) fn wins<'a>(page: &mut String, wins: impl IntoIterator<Item = &'a Win>) {
    page.push_str("| scenario | figure | peer | theirs | behind it | how sure |\n|---|---|---|---|---|---|\n");
    for win in wins {
        let all = if win.all { "" } else { ", of this variant only" };
        let Win { scenario, figure, peer, theirs, ours, how, .. } = win;
        let _ = writeln!(page, "| {scenario} | {figure} | {peer} | {theirs} | {ours} | {how}{all} |");
    }
}
