//! `cargo instructions`: counts the instructions of the hot paths and compares them with the record.
//!
//! ```sh
//! cargo instructions             # compare; fails if a path takes more than it should
//! cargo instructions codec       # only paths that have this in their name
//! cargo instructions --record    # write the baseline anew
//! ```
//!
//! Instructions do not depend on how busy the machine is, so a test may insist on them. `docs/benchmarks.md` says how to read
//! the table, decision 0022 why it is done so.

mod baseline;
mod callgrind;
mod compare;
mod paths;
mod region;
mod setting;

use std::process::ExitCode;

use baseline::Baseline;
use callgrind::PLAY;
use compare::{Counts, Judgement, Tolerance, compare, head};
use setting::Setting;

/// In the setting of the record. There counts are the same from run to run; this leaves room for changes on purpose.
const TOLERANCE: Tolerance = Tolerance(5.0);
/// With another compiler, C library or valgrind, which change counts by themselves: `docs/benchmarks.md` says by how much. A tenth more
/// fails there, too.
const OTHER_TOOLS: Tolerance = Tolerance(7.0);
/// On another processor or system, whose instructions are not the same.
const OTHER_TARGET: Tolerance = Tolerance(25.0);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        _ if cfg!(debug_assertions) => {
            Err("built for debugging, so its counts mean nothing: `cargo instructions`".into())
        }
        [] => check(""),
        ["--record"] => record(),
        [PLAY, name] => play(name),
        [part] if !part.starts_with('-') => check(part),
        _ => Err("usage: cargo instructions [PART OF A NAME | --record]".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether no path whose name has this part in it takes more than it should.
fn check(part: &str) -> Result<bool, String> {
    let (mut baseline, here) = (Baseline::read()?, setting::here()?);
    baseline.counts.retain(|name, _| name.contains(part));
    let tolerance = tolerance(&baseline.setting, &here);
    let rows = compare(&baseline.counts, &count(part)?, tolerance);
    if rows.is_empty() {
        return Err(format!("no hot path has \"{part}\" in its name"));
    }
    println!("{}", head());
    rows.iter().for_each(|row| println!("{row}"));
    let failed = rows.iter().filter(|row| row.judgement.fails()).count();
    if failed > 0 {
        println!(
            "{failed} of {} failed. On purpose? `cargo instructions --record`, and say why in the commit",
            rows.len()
        );
    } else if tolerance == TOLERANCE && rows.iter().any(|row| row.judgement == Judgement::Faster) {
        println!("some are faster: `cargo instructions --record`");
    }
    Ok(failed == 0)
}

fn tolerance(recorded: &Setting, here: &Setting) -> Tolerance {
    let Some(difference) = setting::difference(recorded, here) else { return TOLERANCE };
    let same_target = recorded.get("target") == here.get("target");
    let wider = if same_target { OTHER_TOOLS } else { OTHER_TARGET };
    println!("not as recorded: {difference}; so {} % are allowed instead of {} %", wider.0, TOLERANCE.0);
    wider
}

fn record() -> Result<bool, String> {
    let baseline = Baseline { setting: setting::here()?, counts: count("")? };
    baseline.write()?;
    println!("recorded: {} hot paths", baseline.counts.len());
    Ok(true)
}

fn count(part: &str) -> Result<Counts, String> {
    let chosen = paths::ALL.iter().filter(|path| path.name.contains(part));
    chosen.map(|path| Ok((path.name.to_owned(), callgrind::count(path)?))).collect()
}

fn play(name: &str) -> Result<bool, String> {
    let path = paths::ALL.iter().find(|path| path.name == name).ok_or_else(|| format!("no hot path \"{name}\""))?;
    (path.play)();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_setting_widens_the_tolerance() {
        let setting = |rustc: &str, target: &str| {
            Setting::from(
                [("rustc", rustc), ("target", target)].map(|(name, value)| (name.to_owned(), value.to_owned())),
            )
        };
        let recorded = setting("1.95.0", "x86_64");
        assert_eq!(tolerance(&recorded, &recorded), TOLERANCE);
        assert_eq!(tolerance(&recorded, &setting("1.97.0", "x86_64")), OTHER_TOOLS);
        assert_eq!(tolerance(&recorded, &setting("1.95.0", "aarch64")), OTHER_TARGET);
    }
}
