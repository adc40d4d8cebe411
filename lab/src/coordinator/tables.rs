//! The tables of targets, of those that were missed, and of the figures in which a peer is ahead.

use std::fmt::Write;

use crate::record::{Played, Record};
use crate::target::Target;
use crate::targets;
use crate::wins::Win;

/// Every target, with its verdict.
pub(crate) fn bars(page: &mut String, record: &Record) {
    page.push_str("| | | target | median | smallest to largest | verdict |\n|---|---|---|---|---|---|\n");
    for target in targets::asked(record) {
        let Target { letter, what, .. } = &target;
        let (bar, shown, spread, verdict) = (target.bar(), target.shown(), target.spread(), target.verdict());
        let _ = writeln!(page, "| ({letter}) | {what} | {bar} | {shown} | {spread} | {verdict} |");
    }
}

/// A section of its own: every target that was missed, and what the baselines reach there.
pub(crate) fn missed(page: &mut String, record: &Record) {
    page.push_str("\n### Missed targets\n\n");
    let missed = targets::missed(record);
    if missed.is_empty() {
        page.push_str("None.\n");
        return;
    }
    page.push_str(
        "Each stands beside what the baselines reached by the same measure, in the same rounds and with hand-offs as often: clients that \
         block until they are told, with and without a lock. A baseline is not a lower bound. *None of them* means that no \
         blocking client met the target on this machine.\n\n",
    );
    page.push_str("| | | target | bandog | baselines | met by |\n|---|---|---|---|---|---|\n");
    for target in missed {
        let Target { letter, what, .. } = &target;
        let (bar, own, baselines, by) = (target.bar(), target.own(), target.baselines(), target.reached_by());
        let _ = writeln!(page, "| ({letter}) | {what} | {bar} | {own} | {baselines} | {by} |");
    }
}

/// What was played, of which commit, where, and how often.
pub(crate) fn played(page: &mut String, record: &Record) {
    page.push_str(
        "| scenario | commit | machine | minutes | runs kept | runs dropped | contenders without figures |\n|---|---|---|---|---|---|---|\n",
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
