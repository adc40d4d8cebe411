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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Command;

    use pty_process::blocking::{Command as PtyCommand, open};

    use super::*;

    const MARK: &str = "BANDOG_TEST_PANICS_AT_A_TERMINAL";

    /// Started again at a terminal, this very test takes the terminal and panics.
    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        if std::env::var_os(MARK).is_some() {
            let _taken = Taken::new().unwrap();
            panic!("on purpose");
        }
        let (mut pty, pts) = open().unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        let name = "top::terminal::tests::a_panic_gives_the_terminal_back_before_it_is_told";
        again.args(["--exact", name, "--nocapture"]).env(MARK, "1");
        let mut child = PtyCommand::from(again).spawn(pts).unwrap();
        let mut said = Vec::new();
        // Fails when the last process has closed the terminal.
        let _ = pty.read_to_end(&mut said);
        assert!(!child.wait().unwrap().success());
        let said = String::from_utf8_lossy(&said);
        let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("no {words:?} in {said:?}"));
        assert!(at("\x1b[?1049h") < at("\x1b[?1049l") && at("\x1b[?1049l") < at("on purpose"), "{said:?}");
    }
}
