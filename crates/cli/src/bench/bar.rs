//! The progress of a scenario, on a terminal's standard error and nowhere else.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::units::grouped;
use super::word;
use crate::args::Scenario;
use crate::note::{millis, short};
use crate::screen::Screen;

/// A bar, or nothing where nobody looks.
#[derive(Debug)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn new(scenario: Scenario, length: Duration, json: bool) -> Self {
        let screen = Screen::stderr();
        if json || screen.columns().is_none() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(Some(millis(length)), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix:11} {wide_bar} {msg}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars(screen.sign("█▉▊▋▌▍▎▏ ", "##-")));
        }
        bar.set_prefix(word(scenario));
        let bar = Self(Some(bar));
        bar.show(Duration::ZERO, 0);
        bar
    }

    pub(crate) fn show(&self, gone: Duration, operations: u64) {
        let Some(bar) = &self.0 else { return };
        bar.set_message(format!("{:>9} in {}", grouped(operations), short(gone)));
        bar.set_position(millis(gone));
    }

    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
