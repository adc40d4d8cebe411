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
    seen: Arc<AtomicU64>,
}

impl Monitor {
    pub(crate) fn start(socket: &Path) -> std::io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(b"MONITOR\r\n")?;
        let (seen, reader) = (Arc::new(AtomicU64::new(0)), BufReader::new(stream.try_clone()?));
        let counter = Arc::clone(&seen);
        std::thread::spawn(move || {
            // The first is the answer itself. Names may be no text, so lines are bytes.
            for line in reader.split(b'\n').skip(1).map_while(Result::ok) {
                counter.fetch_add(u64::from(!is_from_script(&line)), Ordering::Relaxed);
            }
        });
        Ok(Self { stream, seen })
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

/// `+1700000000.000000 [0 lua] "HGET" …`
fn is_from_script(line: &[u8]) -> bool {
    let head = line.split(|byte| *byte == b']').next().unwrap_or_default();
    head.ends_with(b" lua")
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
