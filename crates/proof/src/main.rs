//! `cargo xtask`: plays schedules, replays one, and shows what was proved.

use std::process::ExitCode;

use bandog_proof::campaign::{self, Campaign};
use bandog_proof::engine::Choice;
use bandog_proof::judge::judge;
use bandog_proof::plan::Plan;
use bandog_proof::shrink::shrink;
use bandog_proof::sim::World;
use clap::{Parser, Subcommand};

/// Proof that the lock keeps its promises under every schedule we can invent.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays many schedules; fails if one of them breaks a promise.
    Prove {
        /// How many.
        #[arg(long, default_value_t = 100_000)]
        schedules: u64,
        /// The first seed; the others follow.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// How many at once.
        #[arg(long, default_value_t = campaign::cores())]
        threads: usize,
        /// What the store of every schedule runs on.
        #[arg(long, value_enum, default_value_t)]
        store: Choice,
    },
    /// Plays one schedule and tells what happened, cut down to what matters if it fails.
    Replay {
        /// Its seed.
        seed: u64,
        /// Tell the whole schedule even if it fails.
        #[arg(long)]
        whole: bool,
        /// What the store runs on.
        #[arg(long, value_enum, default_value_t)]
        store: Choice,
    },
    /// Visits every state of a small world, and tells what breaks without each rule.
    States,
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Prove { schedules, seed, threads, store } => prove(&Campaign { schedules, seed, threads, store }),
        Command::Replay { seed, whole, store } => replay(seed, whole, store),
        Command::States if bandog_proof::states::report() => ExitCode::SUCCESS,
        Command::States => ExitCode::FAILURE,
    }
}

fn prove(campaign: &Campaign) -> ExitCode {
    let summary = campaign.run(true);
    println!("{summary}");
    let Some((seed, _)) = summary.failures.first() else { return ExitCode::SUCCESS };
    println!("\nthe first of them, cut down:");
    replay(*seed, false, campaign.store)
}

fn replay(seed: u64, whole: bool, store: Choice) -> ExitCode {
    let (plan, engine) = (Plan::new(seed), store.engine());
    let failed = judge(&plan, &World::play(&plan, &engine, false));
    let plan = match &failed {
        Some(_) if !whole => shrink(&plan, &engine).0,
        _ => plan,
    };
    println!("{plan:#?}");
    let played = World::play(&plan, &engine, true);
    played.log.iter().for_each(|line| println!("{line}"));
    match judge(&plan, &played) {
        Some(failure) => {
            println!("\nseed {seed} breaks \"{}\": {}", failure.promise, failure.story);
            ExitCode::FAILURE
        }
        None => {
            println!("\nseed {seed} keeps every promise");
            ExitCode::SUCCESS
        }
    }
}
