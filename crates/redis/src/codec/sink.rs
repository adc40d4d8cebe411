//! Where the [codec](super) puts a call: into a [`Call`], for those who look at it, or straight into the bytes that are sent.

use std::sync::LazyLock;

use crate::resp::Frame;
use crate::script::Script;

use super::Call;
use super::pack::Pack;

/// How a server is told which script to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// By its digest: the server has it.
    ByDigest,
    /// By its text.
    ByText,
}

/// Takes the one key, and then the arguments.
pub(super) trait Sink {
    fn key(&mut self, write: impl FnOnce(&mut Pack<'_>));
    fn argument(&mut self, write: impl FnOnce(&mut Pack<'_>));
}

impl Sink for Call {
    fn key(&mut self, write: impl FnOnce(&mut Pack<'_>)) {
        write(&mut Pack(&mut self.key));
    }

    fn argument(&mut self, write: impl FnOnce(&mut Pack<'_>)) {
        let mut argument = Vec::new();
        write(&mut Pack(&mut argument));
        self.args.push(argument);
    }
}

/// A call as the command that makes it: `EVALSHA digest 1 key argument…`.
pub(super) struct Bytes<'a>(Frame<'a>);

impl<'a> Bytes<'a> {
    pub(super) fn begin(how: How, script: Script, out: &'a mut Vec<u8>) -> Self {
        let mut frame = Frame::new(out);
        match how {
            How::ByDigest => frame.encoded(head(script), HEAD),
            How::ByText => [b"EVAL", script.text().as_bytes(), b"1"].into_iter().for_each(|word| frame.argument(word)),
        }
        Self(frame)
    }

    /// For a script that takes so many keys.
    pub(super) fn begin_many(how: How, script: Script, keys: usize, out: &'a mut Vec<u8>) -> Self {
        let mut frame = Frame::new(out);
        match how {
            How::ByDigest => frame.encoded(uncounted(script), HEAD - 1),
            How::ByText => [b"EVAL", script.text().as_bytes()].into_iter().for_each(|word| frame.argument(word)),
        }
        frame.argument(keys.to_string().as_bytes());
        Self(frame)
    }

    pub(super) fn done(self) {
        self.0.done();
    }
}

impl Sink for Bytes<'_> {
    fn key(&mut self, write: impl FnOnce(&mut Pack<'_>)) {
        self.argument(write);
    }

    fn argument(&mut self, write: impl FnOnce(&mut Pack<'_>)) {
        self.0.argument_by(|out| write(&mut Pack(out)));
    }
}

/// A [`head`] without its last word.
pub(super) fn uncounted(script: Script) -> &'static [u8] {
    let head = head(script);
    head.strip_suffix(ONE).unwrap_or(head)
}

/// One key, encoded.
const ONE: &[u8] = b"$1\r\n1\r\n";

/// Words in a [`head`].
const HEAD: usize = 3;

/// What every call by digest of a script begins with, encoded: the command, the digest, and how many keys there are.
fn head(script: Script) -> &'static [u8] {
    static HEADS: LazyLock<Vec<(Script, Vec<u8>)>> = LazyLock::new(|| {
        let head = |script: Script| {
            let digest = sha1_smol::Sha1::from(script.text()).digest();
            format!("$7\r\nEVALSHA\r\n$40\r\n{digest}\r\n$1\r\n1\r\n").into_bytes()
        };
        Script::ALL.into_iter().map(|script| (script, head(script))).collect()
    });
    HEADS.iter().find(|(of, _)| *of == script).map_or(&[], |(_, head)| head)
}
