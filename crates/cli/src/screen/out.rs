//! Standard output, for answers of many lines.

use std::io::{BufWriter, Stdout, Write};

use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;

/// Lines on their way out. A reader who has gone, as in `bandog ls | head`, ends the command without a word.
#[derive(Debug)]
pub(crate) struct Out(Sink);

#[derive(Debug)]
enum Sink {
    Stream(BufWriter<Stdout>),
    Page(Vec<u8>),
}

impl Out {
    pub(crate) fn new() -> Self {
        Self(Sink::Stream(BufWriter::new(std::io::stdout())))
    }

    /// Keeps the lines, for a screen that is drawn whole.
    pub(crate) fn page() -> Self {
        Self(Sink::Page(Vec::new()))
    }

    /// The lines that were kept.
    pub(crate) fn lines(self) -> Vec<String> {
        let Sink::Page(text) = self.0 else { return Vec::new() };
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    fn sink(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Sink::Stream(stream) => stream,
            Sink::Page(text) => text,
        }
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.sink(), "{text}").map_err(|error| stopped(&error))
    }

    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        writeln!(self.sink(), "{value}").map_err(|error| stopped(&error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.sink().flush().map_err(|error| stopped(&error))
    }
}

fn stopped(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::said(Exit::Fine),
        _ => Failure::new("output", Exit::Unavailable, format!("the answer could not be printed: {error}")),
    }
}
