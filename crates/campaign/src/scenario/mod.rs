//! The scenarios. Each starts its own server and workers, and gives a report of its bars.

mod deaf;
mod ending;
mod fifo;
mod head;
mod healthy;
mod hoard;
mod holds;
mod kill;
mod lead;
mod leads;
mod list;
mod lockset;
mod puppets;
mod stop;
mod waiting;

use std::fmt;
use std::io;

use crate::args::Orders;
use crate::report::Report;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Scenario {
    Kill,
    Head,
    Stop,
    Lockset,
    Fifo,
    Deaf,
    Healthy,
    Lead,
    Holds,
    List,
    Waiting,
}

impl Scenario {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Kill,
        Self::Head,
        Self::Stop,
        Self::Lockset,
        Self::Fifo,
        Self::Deaf,
        Self::Healthy,
        Self::Lead,
        Self::Holds,
        Self::List,
        Self::Waiting,
    ];

    pub(crate) fn play(self, orders: &Orders) -> io::Result<Report> {
        let count = |usual: usize| orders.count.unwrap_or(usual);
        match self {
            Self::Kill => kill::play(count(1_000), orders),
            Self::Head => head::play(count(1_000), orders),
            Self::Stop => stop::play(count(1_000), orders),
            Self::Lockset => lockset::play(count(2_000), orders),
            Self::Fifo => fifo::play(count(10_000), orders),
            Self::Deaf => deaf::play(count(10_000), orders),
            Self::Healthy => healthy::play(orders),
            Self::Lead => lead::play(count(1_000), orders),
            Self::Holds => holds::play(orders),
            Self::List => list::play(orders),
            Self::Waiting => waiting::play(orders),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Head => "head",
            Self::Stop => "stop",
            Self::Lockset => "lockset",
            Self::Fifo => "fifo",
            Self::Deaf => "deaf",
            Self::Healthy => "healthy",
            Self::Lead => "lead",
            Self::Holds => "holds",
            Self::List => "list",
            Self::Waiting => "waiting",
        })
    }
}
