//! What stands around the list: header, alerts, events, and the keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::super::state::{Mode, State};
use super::put;
use super::style::Brush;
use crate::screen::{Ink, harmless};
use crate::watch::{Event, clock, found};

const KEYS: &str = "? help  q quit  enter show  b break  / filter  s sort  r reverse  space pause";

pub(super) fn header(frame: &mut Frame<'_>, area: Rect, state: &State, brush: Brush) {
    let model = &state.model;
    let rate = format!("{:.1}/s", model.rate.per_second(state.now));
    let counts = format!("{}  {rate}", found(model.rows.len(), model.holders(), model.waiters()).join("  "));
    let width = usize::from(area.width);
    // The counts are what changes: they are whole, and the store has the rest.
    let store = state.screen.cut(&harmless(&model.store), width.saturating_sub(counts.width() + 2));
    let gap = width.saturating_sub(store.width() + counts.width());
    let first = Line::from(vec![
        brush.span(Ink::Strong, &store),
        brush.span(Ink::Plain, &" ".repeat(gap)),
        brush.span(Ink::Plain, &counts),
    ]);
    put(frame, area, vec![first, second(state, width, brush)]);
}

fn second(state: &State, width: usize, brush: Brush) -> Line<'static> {
    let model = &state.model;
    if let Some(trouble) = &model.trouble {
        return brush.line(Ink::Wrong, &state.screen.cut(&harmless(trouble), width));
    }
    let mut spans = Vec::new();
    if state.paused {
        spans.push((Ink::Risky, "paused  ".to_owned()));
    }
    if model.beyond > 0 {
        let locks = if model.beyond == 1 { "lock" } else { "locks" };
        spans.push((Ink::Risky, format!("{} more {locks} not shown (--limit)  ", model.beyond)));
    }
    if model.unread > 0 {
        spans.push((Ink::Risky, format!("{} cannot be read (bandog ls)  ", model.unread)));
    }
    let reverse = if state.reverse { ", reversed" } else { "" };
    spans.push((Ink::Faint, format!("{}  by {}{reverse}  ", harmless(&model.pattern), state.order.word())));
    spans.push((Ink::Faint, model.looks.clone()));
    brush.spans(spans)
}

pub(super) fn alerts(frame: &mut Frame<'_>, area: Rect, state: &State, brush: Brush) {
    let (alerts, room) = (&state.model.alerts, usize::from(area.height));
    let more = alerts.len().saturating_sub(room);
    let sign = state.screen.sign("▲", "!");
    let line = |(at, alert): (usize, &super::super::alert::Alert)| {
        let more = if more > 0 && at + 1 == room { format!(" (and {more} more)") } else { String::new() };
        let room = usize::from(area.width).saturating_sub(2 + more.width());
        brush.line(Ink::Wrong, &format!("{sign} {}{more}", state.screen.cut(&alert.words(), room)))
    };
    put(frame, area, alerts.iter().take(room).enumerate().map(line).collect());
}

pub(super) fn events(frame: &mut Frame<'_>, area: Rect, state: &State, brush: Brush) {
    let Some(room) = usize::from(area.height).checked_sub(1) else { return };
    let dash = state.screen.sign("─", "-");
    let title = format!("EVENTS {}", dash.repeat(usize::from(area.width).saturating_sub(7)));
    let shown: Vec<&Event> = state.model.events.iter().take(room).collect();
    let most = usize::from(area.width) / 3;
    let widest = shown.iter().map(|event| harmless(event.lock.as_str()).width()).max().unwrap_or(0).min(most);
    let mut lines = vec![brush.line(Ink::Faint, &title)];
    lines.extend(shown.into_iter().map(|event| event_line(event, (widest, area.width), state, brush)));
    put(frame, area, lines);
}

fn event_line(event: &Event, (width, whole): (usize, u16), state: &State, brush: Brush) -> Line<'static> {
    let name = state.screen.cut(&harmless(event.lock.as_str()), width);
    let blank = " ".repeat(width.saturating_sub(name.width()) + 2);
    let room = usize::from(whole).saturating_sub(10 + width + 2 + 10);
    Line::from(vec![
        brush.span(Ink::Faint, &format!("{}  ", clock(event.at))),
        brush.span(Ink::Strong, &name),
        brush.span(Ink::Plain, &blank),
        brush.span(event.change.ink(), &format!("{:<10}", event.change.word())),
        brush.span(Ink::Plain, &state.screen.cut(&event.change.words(), room)),
    ])
}

pub(super) fn footer(frame: &mut Frame<'_>, area: Rect, state: &State, brush: Brush) {
    let line = match (&state.mode, &state.message) {
        (Mode::Filter(text), None) => {
            let typed = format!("filter (* ? [a-z]): {}", harmless(text));
            // The end is where one types.
            let from = typed.chars().count().saturating_sub(usize::from(area.width).saturating_sub(1));
            let cursor = state.screen.sign("▏", "_");
            brush.line(Ink::Strong, &format!("{}{cursor}", typed.chars().skip(from).collect::<String>()))
        }
        // Whoever says it has made it harmless: twice would show what nobody wrote.
        (_, Some(message)) => brush.line(message.ink, &state.screen.cut(&message.text, usize::from(area.width))),
        (_, None) => brush.line(Ink::Faint, KEYS),
    };
    put(frame, area, vec![line]);
}
