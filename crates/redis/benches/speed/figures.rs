//! Medians, spreads, ratios, and the table they are printed in.

use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the one clock that all processes of a machine share.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// What a share of the values lies below.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index into a list")]
    let at = (sorted.len().saturating_sub(1) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// The value in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The same thing measured on the floor and on bandog, round by round, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    pub(crate) floor: Vec<f64>,
    pub(crate) ours: Vec<f64>,
}

impl Sides {
    pub(crate) fn add(&mut self, floor: f64, ours: f64) {
        self.floor.push(floor);
        self.ours.push(ours);
    }

    /// The median of the rounds' own ratios.
    fn ratio(&self) -> f64 {
        median(&self.floor.iter().zip(&self.ours).map(|(floor, ours)| ours / floor).collect::<Vec<_>>())
    }
}

/// The tables, and whether every bar was met.
#[derive(Debug, Default)]
pub(crate) struct Report {
    missed: usize,
}

impl Report {
    pub(crate) fn head(&self, what: &str, floor: &str) {
        println!("\n{:<44} {floor:>24} {:>24} {:>7}  bar", format!("{what}, median (10 % to 90 %)"), "bandog", "ratio");
    }

    pub(crate) fn row(&mut self, name: &str, sides: &Sides, bar: Option<f64>) {
        let ratio = sides.ratio();
        let bar = bar.map_or_else(String::new, |bar| self.bar(ratio, bar));
        println!("{name:<44} {:>24} {:>24} {ratio:>6.2}×  {bar}", shown(&sides.floor), shown(&sides.ours));
    }

    fn bar(&mut self, ratio: f64, bar: f64) -> String {
        let met = ratio <= bar;
        self.missed += usize::from(!met);
        format!("≤ {bar}×: {}", if met { "met" } else { "MISSED" })
    }

    pub(crate) fn verdict(&self) -> ExitCode {
        match self.missed {
            0 => ExitCode::SUCCESS,
            missed => {
                println!("\n{missed} of the bars missed");
                ExitCode::FAILURE
            }
        }
    }
}

fn shown(values: &[f64]) -> String {
    format!("{:.1} ({:.1} to {:.1})", median(values), quantile(values, 0.1), quantile(values, 0.9))
}
