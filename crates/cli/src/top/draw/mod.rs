//! The screen of `top`, drawn from its state and nothing else. Works from 40 × 10 on; 80 × 24 shows everything.

mod list;
mod panels;
mod popup;
mod style;

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use self::style::Brush;
use super::state::State;
use crate::screen::Ink;

/// The smallest screen on which anything can be seen.
pub(crate) const SMALLEST: (u16, u16) = (40, 10);

/// How many lines each part has.
#[derive(Debug, Clone, Copy)]
struct Parts {
    header: u16,
    alerts: u16,
    events: u16,
}

impl Parts {
    /// The list has the rest, and at least half.
    fn of(height: u16, alerts: usize) -> Self {
        let (header, most, events) = match height {
            20.. => (2, 4, 7),
            14.. => (2, 2, 4),
            _ => (1, 1, 0),
        };
        Self { header, alerts: u16::try_from(alerts).unwrap_or(most).min(most), events }
    }
}

pub(crate) fn draw(frame: &mut Frame<'_>, state: &State) {
    let (area, brush) = (frame.area(), Brush::new(&state.screen));
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (columns, lines) = SMALLEST;
        frame.render_widget(brush.line(Ink::Risky, &format!("too small: {columns} x {lines} needed")), area);
        return;
    }
    let parts = Parts::of(area.height, state.model.alerts.len());
    let rows = [
        Constraint::Length(parts.header),
        Constraint::Min(3),
        Constraint::Length(parts.alerts),
        Constraint::Length(parts.events),
        Constraint::Length(1),
    ];
    let [header, middle, alerts, events, footer] = Layout::vertical(rows).areas(area);
    panels::header(frame, header, state, brush);
    list::draw(frame, middle, state, brush);
    panels::alerts(frame, alerts, state, brush);
    panels::events(frame, events, state, brush);
    panels::footer(frame, footer, state, brush);
    popup::draw(frame, area, state, brush);
}

/// Lines from the top of an area.
fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'_>>) {
    frame.render_widget(ratatui::widgets::Paragraph::new(lines), area);
}
