//! Inks as the terminal has them: without colours where none are wanted.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::screen::{Ink, Screen};

#[derive(Debug, Clone, Copy)]
pub(super) struct Brush {
    colour: bool,
}

impl Brush {
    pub(super) fn new(screen: &Screen) -> Self {
        Self { colour: screen.has_colour() }
    }

    pub(super) fn style(self, ink: Ink) -> Style {
        let style = match ink {
            Ink::Plain => Style::new(),
            Ink::Strong => Style::new().add_modifier(Modifier::BOLD),
            Ink::Faint => Style::new().add_modifier(Modifier::DIM),
            Ink::Good => Style::new().fg(Color::Green),
            Ink::Risky => Style::new().fg(Color::Yellow),
            Ink::Wrong => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        };
        if self.colour { style } else { Style { fg: None, ..style } }
    }

    pub(super) fn span(self, ink: Ink, text: &str) -> Span<'static> {
        Span::styled(text.to_owned(), self.style(ink))
    }

    pub(super) fn line(self, ink: Ink, text: &str) -> Line<'static> {
        Line::from(self.span(ink, text))
    }

    pub(super) fn spans(self, spans: Vec<(Ink, String)>) -> Line<'static> {
        Line::from(spans.into_iter().map(|(ink, text)| Span::styled(text, self.style(ink))).collect::<Vec<_>>())
    }
}
