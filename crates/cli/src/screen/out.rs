//! Standard output, for answers of many lines.

use std::io::{BufWriter, Stdout, Write};

use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;

/// Lines on their way out. A reader who has gone, as in `bandog ls | head`, ends the command without a word.
#[derive(Debug)]
pub(crate) struct Out(BufWriter<Stdout>);

impl Out {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(std::io::stdout()))
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.0, "{text}").map_err(|error| stopped(&error))
    }

    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        writeln!(self.0, "{value}").map_err(|error| stopped(&error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(|error| stopped(&error))
    }
}

fn stopped(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::said(Exit::Fine),
        _ => Failure::new("output", Exit::Unavailable, format!("the answer could not be printed: {error}")),
    }
}
