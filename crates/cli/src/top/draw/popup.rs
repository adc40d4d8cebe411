//! What stands over the list: help, one lock, and the questions before a lock is broken.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::border;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::super::state::{Breaking, Details, Mode, State};
use super::style::Brush;
use crate::entry::mode_words;
use crate::note::{short, waiters};
use crate::revoke::question::at_once;
use crate::screen::{Ink, Out, harmless};
use crate::show;
use crate::watch::Party;

/// Borders for a locale that knows nothing else.
const PLAIN: border::Set<'_> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

const HELP: &[(&str, &str)] = &[
    ("up down j k", "choose a lock (also PgUp PgDn g G)"),
    ("enter", "show it: holders, queue, history"),
    ("b", "break it: asks for a reason, then again"),
    ("/", "only names that match; Ctrl-U takes back what was typed"),
    ("s r", "sort by another column; the other way"),
    ("space", "stop looking; go on"),
    ("q Esc", "quit, or close what is open"),
    ("HOLDS", "how long the last holds lasted, the present one last; the longest is the highest bar"),
    ("LEFT", "of the lease; it is renewed with 2/3 left"),
    ("alerts", "held or waited for too much (--alert-hold, --alert-waiters), not renewed, asked to give up"),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, brush: Brush) {
    match &state.mode {
        Mode::List | Mode::Filter(_) => {}
        Mode::Help => {
            let line = |(key, text): &(&str, &str)| {
                Line::from(vec![brush.span(Ink::Strong, &format!("{key:<12}")), brush.span(Ink::Plain, text)])
            };
            let lines = HELP.iter().map(line).collect();
            window(frame, area, state, Window { title: "keys", keys: "Esc close", lines, above: 0 });
        }
        Mode::Details(details) => show(frame, area, state, details, brush),
        Mode::Reason(breaking) => reason(frame, area, state, breaking, brush),
        Mode::Confirm(breaking) => confirm(frame, area, state, breaking, brush),
    }
}

struct Window<'a> {
    title: &'a str,
    keys: &'a str,
    lines: Vec<Line<'static>>,
    /// Lines that are scrolled away.
    above: usize,
}

/// A window as high as it must be, in the middle; the keys at its foot are always seen.
fn window(frame: &mut Frame<'_>, area: Rect, state: &State, window: Window<'_>) {
    let width = area.width.min(78);
    let room = usize::from(width.saturating_sub(2)).max(1);
    let needed: usize = window.lines.iter().map(|line| line.width().max(1).div_ceil(room)).sum();
    // Words that do not fit go on in the next line, which may need one more.
    let slack = window.lines.iter().filter(|line| line.width() > room).count();
    let height = u16::try_from(needed + slack + 2).unwrap_or(u16::MAX).min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let set = if state.screen.sign("x", "") == "x" { border::PLAIN } else { PLAIN };
    let title = format!(" {} ", state.screen.cut(&harmless(window.title), room.saturating_sub(4)));
    let block = Block::bordered().border_set(set).title(title).title_bottom(format!(" {} ", window.keys));
    let most = needed.saturating_sub(usize::from(height.saturating_sub(2)));
    let above = u16::try_from(window.above.min(most)).unwrap_or(u16::MAX);
    let text = Paragraph::new(window.lines).wrap(Wrap { trim: false }).scroll((above, 0)).block(block);
    frame.render_widget(Clear, place);
    frame.render_widget(text, place);
}

fn show(frame: &mut Frame<'_>, area: Rect, state: &State, details: &Details, brush: Brush) {
    let width = usize::from(area.width.min(78)).saturating_sub(2);
    let lines = match &details.info {
        None => vec!["nobody holds it or waits for it, and the store remembers nothing of it".to_owned()],
        Some(info) => {
            let mut page = Out::page();
            // A page takes every line.
            let _ = show::print(&mut page, state.screen.part(width), info.clone());
            page.lines()
        }
    };
    let lines = lines.iter().map(|line| brush.line(Ink::Plain, line)).collect();
    let title = details.lock.as_str();
    window(frame, area, state, Window { title, keys: "Esc close  b break", lines, above: details.above });
}

fn reason(frame: &mut Frame<'_>, area: Rect, state: &State, breaking: &Breaking, brush: Brush) {
    let mut lines = holders(breaking, brush);
    let cursor = state.screen.sign("▏", "_");
    lines.push(brush.line(Ink::Strong, &format!("reason: {}{cursor}", harmless(&breaking.reason))));
    if let Some(message) = &state.message {
        lines.push(brush.line(message.ink, &message.text));
    }
    let title = format!("break {}", breaking.lock);
    window(frame, area, state, Window { title: &title, keys: "Enter go on  Esc leave it", lines, above: 0 });
}

fn confirm(frame: &mut Frame<'_>, area: Rect, state: &State, breaking: &Breaking, brush: Brush) {
    let mut lines = holders(breaking, brush);
    lines.push(brush.line(Ink::Plain, &format!("reason: {}", harmless(&breaking.reason))));
    let waiters = waiters(breaking.waiters);
    let (ink, what, keys) = if breaking.now {
        let warning = at_once(breaking.next.as_deref());
        (Ink::Wrong, format!("AT ONCE: {warning}"), "y END IT AT ONCE  n ask instead  Esc leave it")
    } else {
        let longest = breaking.holders.iter().map(|holder| holder.left).max().unwrap_or(Duration::ZERO);
        let asked = "asked to give up: the lock passes on when it answers, or when its lease ends";
        (
            Ink::Plain,
            format!("{asked}, in {} at the latest; {waiters}", short(longest)),
            "y break it  n at once  Esc leave it",
        )
    };
    lines.push(brush.line(ink, &what));
    let title = format!("break {}", breaking.lock);
    window(frame, area, state, Window { title: &title, keys, lines, above: 0 });
}

/// Who is hit.
fn holders(breaking: &Breaking, brush: Brush) -> Vec<Line<'static>> {
    let line = |holder: &crate::entry::Holding| {
        let who = Party { id: holder.id, who: Some(holder.who.clone()) }.words();
        let how = format!("  {who}  {}, held {}", mode_words(holder.mode), short(holder.held));
        Line::from(vec![brush.span(Ink::Good, &holder.id.to_string()), brush.span(Ink::Plain, &how)])
    };
    breaking.holders.iter().map(line).collect()
}
