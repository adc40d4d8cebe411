//! The terminal while `top` draws on it: taken whole, and given back however the command ends.

use crossterm::event::{Event, KeyEvent};
use ratatui::DefaultTerminal;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::exit::Exit;
use crate::failure::Failure;

/// Taken over: raw, and its contents put aside. Dropped, it is as it was; a panic gives it back before it prints.
pub(crate) struct Taken(pub(crate) DefaultTerminal);

impl Taken {
    pub(crate) fn new() -> Result<Self, Failure> {
        ratatui::try_init().map(Self).map_err(|error| failed(&error))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // The screen that was put aside has its cursor too.
        let _ = self.0.show_cursor();
        ratatui::restore();
    }
}

pub(crate) fn failed(error: &std::io::Error) -> Failure {
    Failure::new("output", Exit::Unavailable, format!("the terminal cannot be drawn on: {error}"))
}

/// What somebody does at the terminal.
#[derive(Debug)]
pub(crate) enum Input {
    Key(KeyEvent),
    /// It has another size: draw again.
    Resized,
}

/// Reads keys on a thread of its own, which waits for the next one when the command ends, and ends with it.
pub(crate) fn input() -> UnboundedReceiver<Input> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            let input = match event {
                Event::Key(key) => Input::Key(key),
                Event::Resize(..) => Input::Resized,
                _ => continue,
            };
            if sender.send(input).is_err() {
                return;
            }
        }
    });
    receiver
}
