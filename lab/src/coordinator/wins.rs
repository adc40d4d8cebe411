//! Where a peer is ahead of bandog: every figure of every scenario, whatever it says.

use crate::contenders::{self, Side};
use crate::record::{Played, Record};
use crate::scenarios;
use crate::unit::Unit;

/// A figure in which a peer is ahead.
#[derive(Debug)]
pub(crate) struct Win {
    pub(crate) scenario: String,
    pub(crate) figure: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) theirs: String,
    pub(crate) ours: String,
    /// Whether it is the scenario's first figure.
    pub(crate) first: bool,
    /// How sure it is.
    pub(crate) how: &'static str,
    /// Whether it is ahead of all of bandog's.
    pub(crate) all: bool,
}

pub(crate) fn list(record: &Record) -> Vec<Win> {
    record.scenarios.iter().flat_map(in_scenario).collect()
}

fn in_scenario(played: &Played) -> Vec<Win> {
    let Some(scenario) = scenarios::find(&played.id) else { return Vec::new() };
    let [times, costs] = scenario.tables();
    let first = in_figure(played, scenario.main.unit(), true);
    let others = [times, costs].concat().into_iter().flat_map(|unit| in_figure(played, unit, false));
    first.into_iter().chain(others).collect()
}

fn in_figure(played: &Played, unit: Unit, first: bool) -> Vec<Win> {
    let side = |wanted: Side| {
        played.cells.iter().filter_map(move |cell| {
            let contender = contenders::find(&cell.contender).filter(|contender| contender.side == wanted)?;
            Some((contender, cell.figure(unit.name).filter(|_| cell.is_sampled(unit.name))?))
        })
    };
    let ours: Vec<_> = side(Side::Ours).collect();
    let mut wins = Vec::new();
    for (peer, theirs) in side(Side::Peer) {
        // What is written the same is the same.
        let differs = |own: f64| unit.shown(own) != unit.shown(theirs.median);
        let is_ahead = |own: f64| unit.is_better(theirs.median, own) && differs(own);
        let beaten: Vec<_> = ours.iter().filter(|(_, own)| is_ahead(own.median)).collect();
        if beaten.is_empty() {
            continue;
        }
        let apart = beaten.iter().all(|(_, own)| unit.is_apart(theirs, *own));
        wins.push(Win {
            scenario: played.title.clone(),
            figure: unit.title,
            peer: peer.label,
            theirs: unit.shown(theirs.median),
            ours: beaten
                .iter()
                .map(|(own, value)| format!("{} {}", own.label, unit.shown(value.median)))
                .collect::<Vec<_>>()
                .join("; "),
            first,
            how: match (unit.is_counted(), apart) {
                (true, _) => "counted in one run",
                (_, true) => "clear",
                (_, false) => "within the spread",
            },
            all: beaten.len() == ours.len(),
        });
    }
    wins
}
