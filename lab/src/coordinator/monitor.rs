//! How many commands clients send, as `MONITOR` tells it: what a script calls inside the server is marked there and not
//! counted. It costs the server time, so counting has a run of its own, and that run is not timed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts until it is dropped.
pub(crate) struct Monitor {
    stream: UnixStream,
    seen: Arc<[AtomicU64; 2]>,
}

/// How many there were.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Commands {
    pub(crate) all: u64,
    /// Those that go by the clock: by which bandog keeps its places in lines, and `PING`, by which anybody sees to a connection.
    pub(crate) heartbeats: u64,
}

impl Commands {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { all: self.all - before.all, heartbeats: self.heartbeats - before.heartbeats }
    }
}

impl Monitor {
    pub(crate) fn start(socket: &Path) -> std::io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(b"MONITOR\r\n")?;
        let (seen, reader) = (Arc::<[AtomicU64; 2]>::default(), BufReader::new(stream.try_clone()?));
        let counter = Arc::clone(&seen);
        let heartbeat = redis::Script::new(bandog_redis::Script::Heartbeat.text()).get_hash().to_owned();
        std::thread::spawn(move || {
            // The first is the answer itself. Names may be no text, so lines are bytes.
            for line in reader.split(b'\n').skip(1).map_while(Result::ok) {
                let is_command = !is_from_script(&line);
                for (count, is_one) in counter.iter().zip([is_command, is_command && is_heartbeat(&line, &heartbeat)]) {
                    count.fetch_add(u64::from(is_one), Ordering::Relaxed);
                }
            }
        });
        Ok(Self { stream, seen })
    }

    pub(crate) fn seen(&self) -> Commands {
        let [all, heartbeats] = self.seen.each_ref().map(|count| count.load(Ordering::Relaxed));
        Commands { all, heartbeats }
    }
}

/// `+1700000000.000000 [0 lua] "HGET" …`
fn is_from_script(line: &[u8]) -> bool {
    let head = line.split(|byte| *byte == b']').next().unwrap_or_default();
    head.ends_with(b" lua")
}

/// `+1700000000.000000 [0 127.0.0.1:1234] "EVALSHA" "808f…" …`
fn is_heartbeat(line: &[u8], script: &str) -> bool {
    let words = line.splitn(2, |byte| *byte == b']').nth(1).unwrap_or_default();
    let is_ping = words.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b" \"PING\""));
    is_ping || words.windows(script.len()).any(|part| part == script.as_bytes())
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_by_the_clock_is_a_heartbeat() {
        let line = |words: &str| format!("+1700000000.000001 [0 127.0.0.1:4711] {words}").into_bytes();
        for (words, expected) in [
            ("\"PING\"", true),
            ("\"ping\" \"lock\"", true),
            ("\"EVALSHA\" \"808f\" \"1\" \"lock:{job}\"", true),
            ("\"EVALSHA\" \"c0d2\" \"1\" \"lock:{PING}\"", false),
            ("\"GET\" \"PING\"", false),
        ] {
            assert_eq!(is_heartbeat(&line(words), "808f"), expected, "{words}");
        }
        assert!(is_from_script(b"+1700000000.000001 [0 lua] \"PING\""));
    }
}
