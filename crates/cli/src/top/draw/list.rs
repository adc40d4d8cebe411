//! The table of locks.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::super::holds::bars;
use super::super::model::Row;
use super::super::state::State;
use super::put;
use super::style::Brush;
use crate::ls;
use crate::screen::{Cell, Column, Ink, Screen, Table};

/// As `ls` has them, and how long the last holds lasted.
const COLUMNS: &[Column] = &[
    Column::name("NAME"),
    Column::id("HOLDER", 5),
    Column::seldom("KIND", 1),
    Column::left("HOST", 3),
    Column::right("PID", 4),
    Column::left("LABEL", 6),
    Column::right("HELD", 0),
    Column::right("LEFT", 1),
    Column::right("WAITERS", 0),
    Column::right("HOLDS", 2),
];

/// Heights of bars, lowest first.
const BARS: &[char] = &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PLAIN_BARS: &[char] = &['_', '.', ':', '-', '=', '+', '*', '#'];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, brush: Brush) {
    let rows = &state.model.rows;
    if rows.is_empty() {
        let text = match state.model.pattern.as_str() {
            "*" => "no locks: nobody holds or waits for any",
            _ => "no lock that somebody holds or waits for matches the filter",
        };
        return put(frame, area, vec![brush.line(Ink::Faint, text)]);
    }
    let height = usize::from(area.height).saturating_sub(1).max(1);
    let chosen = state.place();
    let above = (chosen + 1).saturating_sub(height);
    let shown: Vec<Vec<Cell>> = rows.iter().skip(above).take(height).map(|row| cells(row, &state.screen)).collect();
    let table = Table::new(state.screen.part(usize::from(area.width)), COLUMNS, &shown);
    let mut lines = vec![brush.spans(table.head_spans())];
    for (at, row) in shown.iter().enumerate() {
        let line = brush.spans(table.spans(row));
        let is_chosen = at + above == chosen;
        lines.push(if is_chosen { padded(line, area.width).patch_style(Modifier::REVERSED) } else { line });
    }
    put(frame, area, lines);
}

fn cells(row: &Row, screen: &Screen) -> Vec<Cell> {
    let mut cells = ls::row(&row.entry);
    cells.push(Cell::new(bars(&row.holds, screen.sign(BARS, PLAIN_BARS))));
    cells
}

/// As wide as the screen: the chosen line is a bar.
fn padded(mut line: ratatui::text::Line<'static>, width: u16) -> ratatui::text::Line<'static> {
    let blank = usize::from(width).saturating_sub(line.width());
    line.push_span(" ".repeat(blank));
    line
}
