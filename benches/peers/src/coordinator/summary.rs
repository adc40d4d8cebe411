//! The report in short, put into a page that somebody else writes: between two lines that mark where.

use std::fmt::Write;
use std::path::Path;

use crate::record::Record;
use crate::{tables, wins};

const BEGIN: &str = "<!-- peers: written by benches/peers/run -->";
const END: &str = "<!-- peers: end -->";

/// Replaces what stands between the marks of a page. `folder` is where the plots are, seen from the page.
pub(crate) fn write(path: &Path, record: &Record, folder: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let page = std::fs::read_to_string(path).map_err(said)?;
    let page = put(&page, &text(record, folder)).ok_or_else(|| format!("{}: no {BEGIN}, {END}", path.display()))?;
    std::fs::write(path, page).map_err(said)
}

fn put(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{text}{END}{after}"))
}

fn text(record: &Record, folder: &str) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "### The bars\n\nA ratio is the median of the rounds' own ratios, with the smallest and the largest. All scenarios of this page together took {:.0} minutes to play.\n\n",
        record.took_seconds / 60.0
    );
    tables::bars(&mut page, record);
    tables::missed(&mut page, record);
    let all = wins::list(record);
    let (first, others): (Vec<_>, Vec<_>) = all.iter().partition(|win| win.first);
    let _ = write!(
        page,
        "\n### Where a peer wins\n\nIn the first figure of a scenario, ahead of bandog, of its fair lock or of its dropped guards; {} other figures in which a peer is ahead are in [the tables]({folder}/README.md#where-a-peer-wins).\n\n",
        others.len()
    );
    tables::wins(&mut page, first);
    page.push_str("\n### What was played\n\n");
    tables::played(&mut page, record);
    page.push_str("\n### Plots\n\nThe first figure of each scenario as a ratio to its floor, and to bandog.\n\n");
    for played in &record.scenarios {
        let _ = writeln!(page, "![{}]({folder}/{}.svg)", played.title, played.id);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        assert_eq!(put(&page, "new\n"), Some(format!("before\n{BEGIN}\nnew\n{END}\nafter\n")));
        assert_eq!(put("no marks", "new"), None);
    }

    #[test]
    fn it_has_the_bars_the_wins_and_the_plots() {
        let text = text(&Record::empty(), "peers");
        for title in [
            "### The bars",
            "### What was missed",
            "### Where a peer wins",
            "### What was played",
            "### Plots",
            "took 1 minutes",
            "not played",
        ] {
            assert!(text.contains(title), "{title}");
        }
    }
}
