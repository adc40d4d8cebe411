//! Commands as bytes: `*N\r\n$length\r\nargument\r\n…`. Those of every call are written where they are sent from, those
//! that are seldom sent are built first.

use std::io::Write;
use std::ops::Range;

const END: &[u8] = b"\r\n";

/// A command in the making, at the end of a buffer. How many arguments it has is known when it is [done](Frame::done).
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    count: usize,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, count: 0 }
    }

    /// Arguments that are encoded already.
    pub(crate) fn encoded(&mut self, bytes: &[u8], count: usize) {
        self.out.extend_from_slice(bytes);
        self.count += count;
    }

    pub(crate) fn argument(&mut self, argument: &[u8]) {
        number(self.out, b'$', argument.len());
        self.out.extend_from_slice(argument);
        self.out.extend_from_slice(END);
        self.count += 1;
    }

    /// An argument that is written where it belongs; its length is put before it.
    pub(crate) fn argument_by(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        write(self.out);
        head(self.out, start, b'$', self.out.len() - start);
        self.out.extend_from_slice(END);
        self.count += 1;
    }

    pub(crate) fn done(self) {
        head(self.out, self.start, b'*', self.count);
    }
}

fn number(out: &mut Vec<u8>, sign: u8, number: usize) {
    out.push(sign);
    digits(out, number);
    out.extend_from_slice(END);
}

fn digits(out: &mut Vec<u8>, number: usize) {
    match u8::try_from(number) {
        Ok(small @ 0..10) => out.push(b'0' + small),
        Ok(small @ 10..100) => out.extend_from_slice(&[b'0' + small / 10, b'0' + small % 10]),
        // A buffer takes all that is written to it.
        _ => drop(write!(out, "{number}")),
    }
}

/// Puts a number before what was written since `start`: few bytes, which are moved faster than they are counted beforehand.
fn head(out: &mut Vec<u8>, start: usize, sign: u8, counted: usize) {
    let end = out.len();
    number(out, sign, counted);
    let length = out.len() - end;
    if let Some(written) = out.get_mut(start..) {
        written.rotate_right(length);
    }
}

/// The number behind the sign at `at`, and where its line ends. Nothing if there is none.
pub(super) fn counted(out: &[u8], at: usize) -> Option<(usize, usize)> {
    let digits = out.get(at + 1..)?;
    let length = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    let number = digits[..length].iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    Some((number, at + 1 + length + END.len()))
}

/// Where the argument at `at` stands, encoded and as it is. Nothing if there is none.
pub(super) fn argument(out: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
    let (length, start) = counted(out, at)?;
    Some((at..start + length + END.len(), start..start + length))
}

/// One command, built word by word.
#[derive(Clone)]
pub(crate) struct Command {
    count: usize,
    arguments: Vec<u8>,
}

impl Command {
    pub(crate) fn new(word: &str) -> Self {
        Self { count: 0, arguments: Vec::new() }.arg(word)
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        Frame { out: &mut self.arguments, start: 0, count: 0 }.argument(argument.as_ref());
        self.count += 1;
        self
    }

    pub(crate) fn number(self, number: u64) -> Self {
        self.arg(number.to_string())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        number(out, b'*', self.count);
        out.extend_from_slice(&self.arguments);
    }
}

// Its arguments may be secret.
impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command").field("words", &self.count).finish_non_exhaustive()
    }
}

/// Commands that go out together, as bytes.
#[derive(Clone, Default)]
pub(crate) struct Packed {
    pub(super) bytes: Vec<u8>,
    count: usize,
}

impl Packed {
    /// How many answers there will be.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a command that writes itself.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.count += 1;
    }
}

impl Extend<Command> for Packed {
    fn extend<T: IntoIterator<Item = Command>>(&mut self, commands: T) {
        commands.into_iter().for_each(|command| self.add(|out| command.write(out)));
    }
}

impl FromIterator<Command> for Packed {
    fn from_iter<T: IntoIterator<Item = Command>>(commands: T) -> Self {
        let mut packed = Self::default();
        packed.extend(commands);
        packed
    }
}

impl From<Command> for Packed {
    fn from(command: Command) -> Self {
        Self::from_iter([command])
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").field("commands", &self.count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_list_of_strings() {
        let packed: Packed = [Command::new("PING"), Command::new("SET").arg("a").number(123_456)].into_iter().collect();
        assert_eq!(packed.count(), 2);
        let bytes = "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$6\r\n123456\r\n";
        assert_eq!(String::from_utf8_lossy(&packed.bytes), bytes);
    }

    #[test]
    fn frame_counted_afterwards_has_the_same_bytes() {
        for length in [0, 1, 9, 10, 99, 100, 255, 256, 70_000] {
            let argument = vec![b'x'; length];
            let (mut known, mut counted) = (b"before".to_vec(), b"before".to_vec());
            let mut frame = Frame::new(&mut known);
            frame.argument(b"SET");
            frame.argument(&argument);
            frame.done();
            let mut frame = Frame::new(&mut counted);
            frame.encoded(b"$3\r\nSET\r\n", 1);
            frame.argument_by(|out| out.extend_from_slice(&argument));
            frame.done();
            assert_eq!(known, counted, "{length}");
            let start = format!("before*2\r\n$3\r\nSET\r\n${length}\r\n");
            assert!(known.starts_with(start.as_bytes()) && known.len() == start.len() + length + 2);
        }
    }
}
