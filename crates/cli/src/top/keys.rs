//! What a key means where the user is. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Quit,
    /// Leaves what stands over the list.
    Close,
    Help,
    Sort,
    Reverse,
    Pause,
    Filter,
    Show,
    Break,
    /// Up or down, so many lines.
    Move(isize),
    Type(char),
    Erase,
    /// Takes back all that was typed.
    Clear,
    /// What was typed is meant.
    Accept,
    /// With or without waiting for the holders.
    Now,
    Yes,
}

/// Lines of a page.
const PAGE: isize = 10;

pub(crate) fn action(mode: &Mode, key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, mode) {
        (KeyCode::Char('c'), _) if control => Some(Action::Quit),
        (KeyCode::Char('u'), Mode::Filter(_) | Mode::Reason(_)) if control => Some(Action::Clear),
        _ if control => None,
        (code, Mode::List) => list(code),
        (code, Mode::Help) => leave(code).or_else(|| (code == KeyCode::Char('?')).then_some(Action::Close)),
        (code, Mode::Details(_)) => details(code),
        (code, Mode::Filter(_) | Mode::Reason(_)) => typing(code),
        (code, Mode::Confirm(_)) => confirm(code),
    }
}

fn list(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Action::Quit),
        KeyCode::Char('?' | 'h') => Some(Action::Help),
        KeyCode::Char('s') => Some(Action::Sort),
        KeyCode::Char('r') => Some(Action::Reverse),
        KeyCode::Char(' ') => Some(Action::Pause),
        KeyCode::Char('/') => Some(Action::Filter),
        KeyCode::Enter => Some(Action::Show),
        KeyCode::Char('b') => Some(Action::Break),
        code => moved(code),
    }
}

fn moved(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Up | KeyCode::Char('k') => Some(Action::Move(-1)),
        KeyCode::Down | KeyCode::Char('j') => Some(Action::Move(1)),
        KeyCode::PageUp => Some(Action::Move(-PAGE)),
        KeyCode::PageDown => Some(Action::Move(PAGE)),
        KeyCode::Home | KeyCode::Char('g') => Some(Action::Move(isize::MIN)),
        KeyCode::End | KeyCode::Char('G') => Some(Action::Move(isize::MAX)),
        _ => None,
    }
}

fn leave(code: KeyCode) -> Option<Action> {
    matches!(code, KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter).then_some(Action::Close)
}

fn details(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char('b') => Some(Action::Break),
        code => leave(code).or_else(|| moved(code)),
    }
}

fn typing(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char(sign) => Some(Action::Type(sign)),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Enter => Some(Action::Accept),
        KeyCode::Esc => Some(Action::Close),
        _ => None,
    }
}

// Neither Enter nor a habit of answering "n" breaks anything.
fn confirm(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char('y') => Some(Action::Yes),
        KeyCode::Char('n') => Some(Action::Now),
        KeyCode::Esc | KeyCode::Char('q') => Some(Action::Close),
        _ => None,
    }
}
