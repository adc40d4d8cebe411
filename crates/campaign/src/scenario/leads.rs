//! What the losses of `lead` amount to: leads before the end of the lease, by kind, and the bar for those that could be told.

use crate::report::{Report, milliseconds};

use super::lead::{Kind, Loss};

impl Loss {
    /// Milliseconds from the telling to the lease's end; below zero when it came too late.
    fn lead(&self) -> f64 {
        match self.end.checked_sub(self.told) {
            Some(lead) => milliseconds(lead),
            None => -milliseconds(self.told - self.end),
        }
    }

    fn is(&self, kind: Kind) -> bool {
        self.kind == Some(kind)
    }
}

pub(super) fn report_leads(losses: &[Loss], report: &mut Report) {
    let could: Vec<&Loss> = losses.iter().filter(|loss| loss.scheduled).collect();
    let least = could.iter().map(|loss| loss.lead()).fold(f64::INFINITY, f64::min);
    let what = "lead of lost() before the end of the last confirmed lease, while the process was scheduled";
    report.bar(what, "more than 0 ms", format!("{least:.1} ms at least"), least > 0.0 && least.is_finite());
    let paused = |loss: &&&Loss| loss.is(Kind::Paused);
    report.figure("losses", losses.len());
    report.figure("scheduled, and so in the bar", could.len());
    report.figure("not scheduled: paused", losses.iter().filter(|loss| paused(&loss)).count());
    let held_up: Vec<&Loss> = losses.iter().filter(|loss| !loss.scheduled && !paused(&loss)).collect();
    report.figure("not scheduled: the machine held it up for longer than the margin", marks(held_up.iter().copied()));
    let of = |kind| could.iter().copied().filter(move |loss: &&Loss| loss.is(kind));
    report.figure("lead, server stopped", marks(of(Kind::Stopped)));
    report.figure("lead, server killed", marks(of(Kind::Killed)));
    report.figure("lead, key deleted", marks(of(Kind::Deleted)));
    let early = could.iter().copied().filter(|loss| loss.kind.is_none());
    report.figure("lead, lost before anything was done", marks(early));
    let late = losses.iter().filter(|loss| loss.is(Kind::Paused)).map(|loss| loss.late);
    report.spread("client paused: told after it went on", late);
}

/// How leads lie, from the least.
fn marks<'a>(losses: impl Iterator<Item = &'a Loss>) -> String {
    let mut leads: Vec<f64> = losses.map(Loss::lead).collect();
    leads.sort_unstable_by(f64::total_cmp);
    let Some(last) = leads.len().checked_sub(1) else { return "none".into() };
    let at = |per_cent: usize| leads[last * per_cent / 100];
    format!("min {:.1}, p1 {:.1}, median {:.1}, in ms, of {}", at(0), at(1), at(50), leads.len())
}
