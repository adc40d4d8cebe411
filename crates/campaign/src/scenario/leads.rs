//! What the losses of `lead` amount to: leads before the end of the lease, by kind, and the bar for those that could be told.

use crate::report::{Report, milliseconds};

use super::lead::{Kind, Loss};

impl Loss {
    /// Milliseconds from the telling to the lease's end; below zero when it came too late.
    fn lead(&self) -> f64 {
        between(self.told, self.end)
    }

    /// The same, had the process run all the time.
    fn scheduled(&self) -> f64 {
        between(self.told.saturating_sub(self.away), self.end)
    }

    fn is(&self, kind: Kind) -> bool {
        self.kind == Some(kind)
    }
}

fn between(from: u64, to: u64) -> f64 {
    match to.checked_sub(from) {
        Some(span) => milliseconds(span),
        None => -milliseconds(from - to),
    }
}

pub(super) fn report_leads(losses: &[Loss], report: &mut Report) {
    let (paused, could): (Vec<&Loss>, Vec<&Loss>) = losses.iter().partition(|loss| loss.paused);
    let least = could.iter().map(|loss| loss.scheduled()).fold(f64::INFINITY, f64::min);
    let what = "lead of lost() before the end of the last confirmed lease, the time it was not scheduled taken off";
    report.bar(what, "more than 0 ms", format!("{least:.1} ms at least"), least > 0.0 && least.is_finite());
    report.figure("losses", losses.len());
    report.figure("of paused processes, and so not in the bar", paused.len());
    let lead = |which: &dyn Fn(&Loss) -> bool| marks(could.iter().filter(|loss| which(loss)).map(|loss| loss.lead()));
    report.figure("lead as it was, server stopped", lead(&|loss| loss.is(Kind::Stopped)));
    report.figure("lead as it was, server killed", lead(&|loss| loss.is(Kind::Killed)));
    report.figure("lead as it was, key deleted", lead(&|loss| loss.is(Kind::Deleted)));
    report.figure("lead as it was, lost before anything was done", lead(&|loss| loss.kind.is_none()));
    report.figure("lead as it was, told after the end", lead(&|loss| loss.lead() <= 0.0));
    report.spread("client paused: told after it went on", paused.iter().map(|loss| loss.late));
}

/// How leads lie, from the least.
fn marks(leads: impl Iterator<Item = f64>) -> String {
    let mut leads: Vec<f64> = leads.collect();
    leads.sort_unstable_by(f64::total_cmp);
    let Some(last) = leads.len().checked_sub(1) else { return "none".into() };
    let at = |per_cent: usize| leads[last * per_cent / 100];
    format!("min {:.1}, p1 {:.1}, median {:.1}, in ms, of {}", at(0), at(1), at(50), leads.len())
}
