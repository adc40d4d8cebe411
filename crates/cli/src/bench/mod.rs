//! `bandog bench`: what locks cost on a store, here and now.
//!
//! `play` measures into a `Record`; `figures` and `buckets` are the arithmetic; `report` prints. Whatever ends it, the clients are shut down, which
//! releases all they held.

mod bar;
mod buckets;
mod caution;
mod figures;
mod play;
mod record;
mod report;
mod units;

use std::time::Duration;

use bandog::{Clock, Locks};
use clap::ValueEnum;

use self::bar::Bar;
use self::figures::Figures;
use self::play::Game;
use self::record::Shared;
use self::report::Report;
use crate::args::{Bench, Scenario};
use crate::connect::{Label, address, connect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::signals::Interrupts;

/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(100);

/// What will be measured.
#[derive(Debug)]
pub(crate) struct Plan {
    scenarios: Vec<Scenario>,
    /// Of each scenario.
    length: Duration,
    tasks: usize,
    prefix: String,
    json: bool,
}

/// How a scenario ended.
#[derive(Debug)]
enum End {
    Over,
    Signal(i32),
    Failed(Failure),
}

pub(crate) async fn bench(args: &Bench, settings: &Settings) -> Result<Exit, Failure> {
    let plan = Plan::new(args)?;
    let locks = connect(&args.store, settings, Label::Usual("bench")).await?;
    if !args.yes {
        caution::check(&locks, &address(&args.store)?, &plan).await?;
    }
    // From here on a signal must not leave a lock held.
    let mut interrupts = Interrupts::new();
    let other = connect(&args.store, settings, Label::Usual("bench")).await?;
    let mut report = Report::new(args.store.json, &locks);
    let ended = plan.measure([&locks, &other], &mut report, &mut interrupts).await;
    let released = shut_down([&locks, &other]).await;
    match ended {
        Ok(Exit::Fine) => released.map(|()| Exit::Fine),
        ended => {
            if let Err(failure) = released {
                failure.say(args.store.json, false);
            }
            ended
        }
    }
}

impl Plan {
    fn new(args: &Bench) -> Result<Self, Failure> {
        let all = Scenario::value_variants().iter().copied();
        let prefix = match &args.name {
            Some(name) => name.clone(),
            None => format!("bandog-bench:{:08x}", getrandom::u32().map_err(|error| no_numbers(&error))?),
        };
        Ok(Self {
            scenarios: all.filter(|scenario| args.only.is_empty() || args.only.contains(scenario)).collect(),
            length: args.length,
            tasks: usize::try_from(args.tasks).unwrap_or(usize::MAX),
            prefix,
            json: args.store.json,
        })
    }

    async fn measure(
        &self,
        clients: [&Locks; 2],
        report: &mut Report,
        interrupts: &mut Interrupts,
    ) -> Result<Exit, Failure> {
        for scenario in self.scenarios.iter().copied() {
            let record = Shared::new(self.seats(scenario));
            let game = Game { clients, name: self.lock(scenario), length: self.length, record: record.clone() };
            let (taken, end) = self.watch(scenario, &game, interrupts).await;
            let figures = Figures::new(&record.take(), taken);
            if !matches!(end, End::Failed(_)) || figures.operations > 0 {
                report.add(scenario, self, &figures, matches!(end, End::Over))?;
            }
            match end {
                End::Over => {}
                End::Signal(signal) => return report.close().map(|()| Exit::Interrupted(signal)),
                End::Failed(failure) => return Err(failure),
            }
        }
        report.close().map(|()| Exit::Fine)
    }

    /// Plays until it is over, a signal comes or something fails; also says how long it took.
    async fn watch(&self, scenario: Scenario, game: &Game<'_>, interrupts: &mut Interrupts) -> (Duration, End) {
        let begun = tokio::select! {
            biased;
            signal = interrupts.next() => return (Duration::ZERO, End::Signal(signal)),
            begun = game.begin(scenario) => begun,
        };
        let mut players = match begun {
            Ok(players) => players,
            Err(failure) => return (Duration::ZERO, End::Failed(failure)),
        };
        let clock = Clock::system();
        let (began, bar) = (clock.now(), Bar::new(scenario, self.length, self.json));
        let end = loop {
            tokio::select! {
                biased;
                signal = interrupts.next() => break End::Signal(signal),
                ended = players.over() => break ended.map_or_else(End::Failed, |()| End::Over),
                () = tokio::time::sleep(TICK) => bar.show(clock.now().since(began), game.record.count()),
            }
        };
        let taken = clock.now().since(began);
        players.stop().await;
        bar.clear();
        (taken, end)
    }

    /// Who takes turns in a scenario.
    fn seats(&self, scenario: Scenario) -> usize {
        match scenario {
            Scenario::Uncontended => 1,
            Scenario::Contended => self.tasks,
            Scenario::HandOff => 2,
        }
    }

    fn lock(&self, scenario: Scenario) -> String {
        format!("{}:{}", self.prefix, word(scenario))
    }
}

/// A scenario as people type it.
fn word(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Uncontended => "uncontended",
        Scenario::Contended => "contended",
        Scenario::HandOff => "hand-off",
    }
}

async fn shut_down(clients: [&Locks; 2]) -> Result<(), Failure> {
    let (one, other) = tokio::join!(clients[0].shutdown(), clients[1].shutdown());
    one.and(other).map_err(|error| Failure::of(error.kind(), &error))
}

fn no_numbers(error: &getrandom::Error) -> Failure {
    Failure::new("system", Exit::Unavailable, format!("no random numbers: {error}"))
}
