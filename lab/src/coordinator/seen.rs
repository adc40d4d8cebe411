//! What a record says, as the [targets](crate::targets) ask for it.
//!
//! A ratio is taken inside each round, where both were played within minutes of each other, and then the median of the rounds' own
//! ratios: the machine is not the same for an hour.

use crate::contenders::{self, Side};
use crate::figures::{Middle, middle};
use crate::record::{Cell, Record};

pub(crate) struct Seen<'a>(pub(crate) &'a Record);

/// A value, and which peers were not there to be compared with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finding {
    /// Nothing, if it was not played.
    pub(crate) value: Option<Middle>,
    pub(crate) without: Vec<String>,
}

impl From<Option<Middle>> for Finding {
    fn from(value: Option<Middle>) -> Self {
        Self { value, without: Vec::new() }
    }
}

impl<'a> Seen<'a> {
    fn cells(&self, scenario: &str) -> &'a [Cell] {
        self.0.scenarios.iter().find(|played| played.id == scenario).map_or(&[], |played| &played.cells)
    }

    fn cell(&self, scenario: &str, who: &str) -> Option<&'a Cell> {
        self.cells(scenario).iter().find(|cell| cell.contender == who)
    }

    /// Whether all these scenarios were played on the same one.
    pub(crate) fn is_of_one_machine(&self, scenarios: &[String]) -> bool {
        let mut machines =
            self.0.scenarios.iter().filter(|played| scenarios.contains(&played.id)).map(|one| &one.machine);
        machines.next().is_none_or(|first| machines.all(|other| other == first))
    }

    pub(crate) fn value(&self, scenario: &str, figure: &str, who: &str) -> Option<Middle> {
        self.cell(scenario, who)?.figure(figure)
    }

    /// The one over the other.
    pub(crate) fn ratio(&self, scenario: &str, figure: &str, who: &str, other: &str) -> Option<Middle> {
        let (own, other) = (self.cell(scenario, who)?.rounds(figure), self.cell(scenario, other)?.rounds(figure));
        middle(own.into_iter().filter_map(|(round, own)| Some(own / other.get(&round)?)).collect())
    }

    /// Over the best of the peers: the one beside which it looks worst, by the rounds.
    pub(crate) fn over_peers(&self, scenario: &str, figure: &str, who: &str, better: fn(f64, f64) -> bool) -> Finding {
        let peers = self.cells(scenario).iter().filter(|cell| is_peer(&cell.contender));
        let beside = peers.filter_map(|cell| self.ratio(scenario, figure, who, &cell.contender));
        let value = beside.reduce(|one, other| if better(one.median, other.median) { other } else { one });
        Finding { value, without: self.without(scenario) }
    }

    /// The peers that should have been there and have no figures, though they have such a lock.
    fn without(&self, scenario: &str) -> Vec<String> {
        let all = crate::scenarios::find(scenario).into_iter().flat_map(|scenario| scenario.who().collect::<Vec<_>>());
        let is_there = |who: &str| {
            let cell = self.cell(scenario, who);
            cell.is_some_and(|cell| !cell.kept.is_empty() || cell.trouble.as_deref().is_some_and(is_no_such_lock))
        };
        all.filter(|who| is_peer(who) && !is_there(who)).map(str::to_owned).collect()
    }
}

fn is_peer(who: &str) -> bool {
    contenders::find(who).is_some_and(|contender| contender.side == Side::Peer)
}

fn is_no_such_lock(trouble: &str) -> bool {
    trouble.starts_with("does not apply")
}
