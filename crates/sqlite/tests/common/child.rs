//! Children: this test binary started again, in a role. They speak on stderr, where the test runner says nothing, and are spoken to on
//! stdin.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStderr, Command, Stdio};

const ROLE: &str = "BANDOG_TEST_ROLE";

/// A child process in a role. Killed when dropped.
pub(crate) struct Child {
    process: std::process::Child,
    mouth: BufReader<ChildStderr>,
}

impl Child {
    /// Starts the test `role_of_a_child` of this binary, with words for it.
    pub(crate) fn start(words: &[&str]) -> Self {
        let binary = std::env::current_exe().expect("the test binary");
        Self::start_as(Command::new(binary), words)
    }

    /// The same through another command, which is given the rest of the line.
    pub(crate) fn start_as(mut command: Command, words: &[&str]) -> Self {
        command.args(["--exact", "role_of_a_child", "--nocapture", "--test-threads=1"]).env(ROLE, words.join("\n"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mouth = BufReader::new(process.stderr.take().expect("piped"));
        Self { process, mouth }
    }

    /// The next line it says; `None` when it is gone. A line that death cut off does not count.
    pub(crate) fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        self.mouth.read_line(&mut line).expect("a pipe from the child");
        line.ends_with('\n').then(|| line.trim_end().to_owned())
    }

    /// The next line, which must come.
    pub(crate) fn must_hear(&mut self) -> String {
        match self.hear().expect("the child has something to say") {
            // A panic begins with an empty line.
            line if line.is_empty() => panic!("the child panicked: {:?}", [self.hear(), self.hear()]),
            line => line,
        }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        let stdin = self.process.stdin.as_mut().expect("piped");
        writeln!(stdin, "{line}").expect("a pipe to the child");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a child to kill");
    }

    pub(crate) fn end(&mut self) -> std::process::ExitStatus {
        drop(self.process.stdin.take());
        self.process.wait().expect("a child to wait for")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The words for this process, if it is a child.
pub(crate) fn words() -> Option<Vec<String>> {
    Some(std::env::var(ROLE).ok()?.split('\n').map(str::to_owned).collect())
}

/// Says a line to the parent.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    // One write per line, so that death does not mix them.
    let mut line = line.to_string();
    line.push('\n');
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// Waits for a line from the parent; `None` at the end.
pub(crate) fn listen() -> Option<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}
