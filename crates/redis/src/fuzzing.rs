//! What the fuzzers call and nobody else may: the parser in pieces, and readers of answers that have no public way to them.

use crate::config::RedisConfig;
use crate::notices;
use crate::resp::{Broken, Parser, Told};
use crate::topology::{Facts, judge_probe};
use crate::value::Value;

/// Everything that a stream of bytes tells, if it comes in pieces of these lengths, or why it is none of a server.
///
/// # Errors
/// The words of the error.
pub fn stream(bytes: &[u8], pieces: impl IntoIterator<Item = usize>) -> Result<Vec<Value>, String> {
    told(bytes, pieces).map_err(|broken| broken.to_string())
}

fn told(bytes: &[u8], pieces: impl IntoIterator<Item = usize>) -> Result<Vec<Value>, Broken> {
    let (mut parser, mut values, mut start, mut end) = (Parser::default(), Vec::new(), 0, 0);
    for piece in pieces.into_iter().chain([bytes.len()]) {
        end = (end + piece).min(bytes.len());
        loop {
            let (taken, one) = parser.next(&bytes[start..end])?;
            start += taken;
            match one {
                Some(Told::Reply(value)) => values.push(value),
                Some(Told::Push(items)) => values.push(Value::Array(items)),
                None => break,
            }
        }
    }
    Ok(values)
}

/// Reads what a server says of itself at an opening, and judges it; what the trial of permissions says; and a notice of a release.
pub fn opening(config: &RedisConfig, mut answers: Vec<Value>) {
    let _ = judge_probe(config, &answers);
    if let Ok(facts) = Facts::read(config, &answers) {
        let _ = facts.judge(config);
    }
    answers.truncate(3);
    let _ = notices::read("lock:release:", answers);
}
