//! A question on the terminal, for what should not be done by mistake.

use std::io::IsTerminal;

use crate::say::write;

/// Whether there is somebody to ask.
pub(crate) fn can_answer() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks; anything but a clear yes is a no.
pub(crate) fn agrees(question: &str) -> bool {
    write(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    // A terminal that was closed (Ctrl-D) has not ended the line.
    if matches!(read, Ok(0) | Err(_)) {
        write("\n");
    }
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
