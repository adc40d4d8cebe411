//! The report: a page with the tables, and a plot for each scenario.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::contenders::{self, Contender, Side};
use crate::figures::Middle;
use crate::plot::{Bar, bars};
use crate::record::{Cell, Played, Record};
use crate::scenarios::{self, Scenario};
use crate::tables;
use crate::unit::Unit;
use crate::wins::{self, Win};

pub(crate) fn write(folder: &Path, record: &Record) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(said)?;
    let mut page = head(record);
    page.push_str("\n## Runs\n\n");
    tables::played(&mut page, record);
    targets(&mut page, record);
    for played in &record.scenarios {
        let Some(scenario) = scenarios::find(&played.id) else { continue };
        section(&mut page, played, &scenario, record.rounds);
        if let Some(svg) = plotted(played, &scenario) {
            std::fs::write(folder.join(format!("{}.svg", played.id)), svg).map_err(said)?;
            let _ = write!(page, "\n![{}]({}.svg)\n", played.title, played.id);
        }
    }
    where_a_peer_wins(&mut page, record);
    std::fs::write(folder.join("README.md"), page).map_err(said)
}

fn head(record: &Record) -> String {
    let mut page =
        "# Side by side\n\nbandog beside the locks people would pick instead, and beside baselines that do less.\n"
            .to_owned();
    if record.quick {
        page.push_str("\n**A quick run: for a look, not for a claim.**\n");
    }
    let _ = write!(
        page,
        "\n```sh\nlab/run --all --json peers.json --report lab/results   # all of it\n```\n\nWhat was played, in one run or in parts: {} of {} scenarios, {:.0} min. \
         The machine is named with each; {}. {} rounds unless a scenario names fewer, every contender once in each; median, in brackets the smallest and the largest round. Client \
         and server share the machine. Noise: {}.\n\n\
         Commands are what clients send, counted with `MONITOR` in a run of its own; what a script calls inside the server is not \
         counted. Processor time is what the kernel counts for all threads of a process. *Two at once* is looked for among the first 200,000 holds of each process. A wait counts when it is over: \
         where somebody starves, the worst wait and the shares tell it, and not the p99.\n\n## Who took part\n\n| | version | played | not in |\n|---|---|---|---|\n",
        record.scenarios.len(),
        scenarios::ALL.len() + 1,
        record.took_seconds / 60.0,
        record.server,
        record.rounds,
        record.rule,
    );
    for contender in contenders::ALL {
        let version = match contender.side {
            Side::Ours => "of the commit that each scenario names".to_owned(),
            _ => record.versions.get(contender.id).cloned().unwrap_or_else(|| absent(record, contender)),
        };
        let (played, reasons) = presence(record, contender);
        let _ = writeln!(page, "| {} | {version} | {played} | {reasons} |", contender.label);
    }
    page
}

/// In how many scenarios somebody has figures, and in which not, and why.
fn presence(record: &Record, contender: Contender) -> (usize, String) {
    let (mut played, mut reasons) = (0, BTreeMap::<String, Vec<&str>>::new());
    for one in &record.scenarios {
        let cell = one.cells.iter().find(|cell| cell.contender == contender.id);
        let is_meant = scenarios::find(&one.id).is_some_and(|scenario| scenario.who().any(|who| who == contender.id));
        match cell.map(|cell| (cell.kept.len(), cell.trouble.clone())) {
            Some((0, Some(trouble))) => reasons.entry(trouble).or_default().push(&one.id),
            Some((1.., _)) => played += 1,
            Some((0, None)) => reasons.entry("all runs were dropped".to_owned()).or_default().push(&one.id),
            None if is_meant => reasons.entry("not asked for".to_owned()).or_default().push(&one.id),
            None => {}
        }
    }
    let reasons = reasons.iter().map(|(reason, scenarios)| format!("{}: {reason}", scenarios.join(", ")));
    (played, reasons.collect::<Vec<_>>().join("; "))
}

fn targets(page: &mut String, record: &Record) {
    page.push_str("\n## Targets\n\nThey were set before anything was measured. A ratio is the median of the ratios of each round.\n\n");
    tables::bars(page, record);
    tables::missed(page, record);
    page.push_str("\n### Other figures\n\nWithout a target; they help to judge.\n\n");
    tables::beside(page, record);
}

fn absent(record: &Record, contender: Contender) -> String {
    let cells = record.scenarios.iter().flat_map(|played| &played.cells);
    let trouble = cells.filter(|cell| cell.contender == contender.id).find_map(|cell| cell.trouble.clone());
    trouble.unwrap_or_else(|| "not asked for in this run".to_owned())
}

fn section(page: &mut String, played: &Played, scenario: &Scenario, usual: usize) {
    // Rounds of these alternate, so they are played together.
    let only = if scenario.is_played_with(scenario) { "'hand-off-*'" } else { &played.id };
    let _ = write!(
        page,
        "\n## ({}) {}\n\n`lab/run --only {only}`, commit `{}`, {}\n\n",
        played.letter, played.title, played.commit, played.machine
    );
    let rounds = played.cells.iter().map(|cell| cell.kept.len()).max().unwrap_or_default();
    if rounds < usual {
        let _ = write!(page, "{rounds} rounds.\n\n");
    }
    let others = played.cells.iter().any(|cell| cell.contender != "bandog" && !cell.kept.is_empty());
    if scenario.once && others {
        page.push_str("Everybody but bandog, whose rounds are of five minutes, played one of two leases.\n\n");
    }
    if scenario.section_us > 0 && scenario.play == "shared" {
        page.push_str(
            "A section is a sleep, which every runtime ends in its own time: *held on average* is what came of it.\n\n",
        );
    }
    if scenario.processes > 1 && scenario.baselines.contains(&"tokio") {
        page.push_str("tokio's mutex is one for each process, and there for its memory alone.\n\n");
    }
    let [times, costs] = scenario.tables();
    table(page, played, scenario, &times);
    table(page, played, scenario, &costs);
    for cell in played.cells.iter().filter(|cell| cell.error.is_some()) {
        let (label, error) = (&cell.contender, cell.error.as_deref().unwrap_or_default());
        let count = cell.figure("errors").map_or_else(|| "some".to_owned(), |errors| Unit::written(errors.median));
        let _ = write!(
            page,
            "\n{label} met {count} errors a run at the median, the first: `{}`\n",
            error.replace('`', "'")
        );
    }
    let absent = |id: &&str| played.cells.iter().all(|cell| cell.contender != **id);
    let absent: Vec<_> = scenario.who().filter(absent).collect();
    if !absent.is_empty() {
        let _ = write!(
            page,
            "\nNot asked for in this run: {}. That nobody is there to be beaten by is no win.\n",
            absent.join(", ")
        );
    }
}

/// One table: the first figure with its spread, then the others.
fn table(page: &mut String, played: &Played, scenario: &Scenario, others: &[Unit]) {
    let main = scenario.main.unit();
    let others: Vec<Unit> = others.iter().copied().filter(|unit| has(played, *unit)).collect();
    if others.is_empty() {
        return;
    }
    let titles: Vec<&str> = others.iter().map(|unit| unit.title).collect();
    let _ = writeln!(page, "\n| | **{}** | {} | runs |", main.title, titles.join(" | "));
    let _ = writeln!(page, "|---|---|{}---|", "---|".repeat(others.len()));
    for cell in &played.cells {
        let label = contenders::find(&cell.contender).map_or("", |contender| contender.label);
        if let Some(trouble) = cell.trouble.as_ref().filter(|_| cell.kept.is_empty()) {
            let _ = writeln!(page, "| {label} | {trouble} |{}", " |".repeat(others.len() + 1));
            continue;
        }
        // A push has no line, a mutex in each process nothing but its weight, and a mark with next to nothing beyond it is no mark.
        let tells = |unit: &Unit| {
            let is_apart = cell.contender == "tokio" && scenario.processes > 1;
            let is_push = cell.contender.starts_with("push");
            cell.is_sampled(unit.name)
                && !(is_push && unit.is_of_a_line())
                && (!is_apart || unit.name == "kib_per_waiter")
        };
        let spread = |value: Middle| {
            format!("{} ({} to {})", main.shown(value.median), main.shown(value.min), main.shown(value.max))
        };
        let first = cell.figure(main.name).filter(|_| tells(&main)).map_or_else(|| "none".to_owned(), spread);
        let shown = |unit: &Unit| {
            let value = cell.figure(unit.name).filter(|_| tells(unit));
            value.map_or_else(String::new, |value| unit.shown(value.median))
        };
        let rest = others.iter().map(shown).collect::<Vec<_>>().join(" | ");
        let _ = writeln!(page, "| {label} | {first} | {rest} | {} |", runs(cell));
    }
}

fn runs(cell: &Cell) -> String {
    let dropped = match cell.dropped.len() {
        0 => String::new(),
        dropped => format!(", {dropped} dropped"),
    };
    let trouble = cell.trouble.as_ref().map_or_else(String::new, |trouble| format!(", then it {trouble}"));
    format!("{}{dropped}{trouble}", cell.kept.len())
}

fn has(played: &Played, unit: Unit) -> bool {
    played.cells.iter().any(|cell| cell.figure(unit.name).is_some())
}

/// By the first of the scenario's baselines that has a figure, or else by bandog.
fn plotted(played: &Played, scenario: &Scenario) -> Option<String> {
    let unit = scenario.main.unit();
    let figure = |cell: &Cell| Some((contenders::find(&cell.contender)?, cell.figure(unit.name)?));
    let all: Vec<_> = played.cells.iter().filter_map(figure).filter(|(_, value)| value.median > 0.0).collect();
    let of = |id: &str| all.iter().find(|(contender, _)| contender.id == id);
    let (base, by) = scenario.baselines.iter().find_map(|baseline| of(baseline)).or_else(|| all.first())?;
    let ours = all.iter().find(|(contender, _)| contender.id == "bandog").map(|(_, value)| *value);
    let bar = |(contender, value): &(Contender, Middle)| Bar {
        label: contender.label,
        value: value.median / by.median,
        low: value.min / by.median,
        high: value.max / by.median,
        of_ours: ours.map(|ours| value.median / ours.median),
        colour: match contender.side {
            Side::Ours => "#2f6fb5",
            Side::Baseline => "#9aa0a6",
            Side::Peer => "#d98c3f",
        },
    };
    let note = format!("{}, times {}; {}; thin lines: smallest and largest round", unit.title, base.label, unit.way());
    Some(bars(&format!("({}) {}", played.letter, played.title), &note, &all.iter().map(bar).collect::<Vec<_>>()))
}

fn where_a_peer_wins(page: &mut String, record: &Record) {
    page.push_str("\n## Where a peer wins\n\nMade from the tables: every figure in which a peer's median is ahead of bandog's, or of its fair lock or its dropped guards. *Clear* if all rounds of the one are ahead of all of the other. A quantile with fewer than five values beyond it in a run is left out.\n\n");
    let wins = wins::list(record);
    if wins.is_empty() {
        page.push_str("Nowhere in this run.\n");
        return;
    }
    let (first, others): (Vec<Win>, Vec<Win>) = wins.into_iter().partition(|win| win.first);
    let _ = write!(page, "### In the first figure of a scenario: {}\n\n", first.len());
    tables::wins(page, &first);
    let _ = write!(page, "\n### In any other figure: {}\n\n", others.len());
    tables::wins(page, &others);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn who_fails_in_a_later_round_keeps_what_it_has_shown() {
        let cell = |kept: usize| Cell {
            contender: "redlock".to_owned(),
            trouble: Some("failed: no answer".to_owned()),
            kept: vec![Figures::from([("client_cores".to_owned(), 0.5), ("lost".to_owned(), 7.0)]); kept],
            ..Cell::default()
        };
        let (scenario, mut record) = (scenarios::find("held-10000").unwrap(), Record::empty());
        let shown = |cell: Cell| {
            let (mut page, played) = (String::new(), Played { cells: vec![cell], ..Played::default() });
            let lost = scenario.tables().concat().into_iter().find(|unit| unit.name == "lost").unwrap();
            table(&mut page, &played, &scenario, &[lost]);
            page.lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(shown(cell(2)), "| redlock (Node) | 0.50 (0.50 to 0.50) | 7.00 | 2, then it failed: no answer |");
        let redlock = contenders::find("redlock").unwrap();
        for (kept, expected) in [(2, (1, String::new())), (0, (0, "held-10000: failed: no answer".to_owned()))] {
            record.scenarios =
                vec![Played { id: "held-10000".to_owned(), cells: vec![cell(kept)], ..Played::default() }];
            assert_eq!(presence(&record, redlock), expected);
        }
    }
}
