//! The least client that will do: RESP2, blocking, with pipelining. Tests ask with it, and benchmarks take it as the floor.

use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use bandog_redis::Value;

use crate::Server;

trait Stream: Read + Write + Send + Sync + Debug {}

impl Stream for UnixStream {}
impl Stream for TcpStream {}
impl Stream for Awake {}

/// Looks for what comes without ever sleeping.
#[derive(Debug)]
struct Awake(TcpStream);

impl Read for Awake {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                read => return read,
            }
        }
    }
}

impl Write for Awake {
    // What a benchmark asks fits into the socket's buffer.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// One connection.
#[derive(Debug)]
pub struct Raw {
    reader: BufReader<Box<dyn Stream>>,
    waiting: Vec<u8>,
    unread: usize,
}

impl Raw {
    /// Through the server's socket.
    pub fn unix(server: &Server) -> Self {
        Self::over(UnixStream::connect(server.socket()).expect("the server listens at its socket"))
    }

    /// Over TCP, without delay.
    pub fn tcp(port: u16) -> Self {
        Self::over(connected(port))
    }

    /// The same by a thread that does not sleep until the answer is there.
    pub fn tcp_awake(port: u16) -> Self {
        let stream = connected(port);
        stream.set_nonblocking(true).expect("a TCP socket");
        Self::over(Awake(stream))
    }

    fn over(stream: impl Stream + 'static) -> Self {
        Self { reader: BufReader::new(Box::new(stream)), waiting: Vec::new(), unread: 0 }
    }

    /// Adds a command to what [`Raw::answers`] sends.
    pub fn queue<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        let _ = write!(self.waiting, "*{}\r\n", args.len());
        for arg in args {
            let arg = arg.as_ref();
            let _ = write!(self.waiting, "${}\r\n", arg.len());
            self.waiting.extend_from_slice(arg);
            self.waiting.extend_from_slice(b"\r\n");
        }
        self.unread += 1;
    }

    /// Sends what is queued and reads one answer for each.
    pub fn answers(&mut self) -> Vec<Value> {
        let sent = self.reader.get_mut().write_all(&self.waiting);
        sent.expect("the server takes what we send");
        self.waiting.clear();
        (0..std::mem::take(&mut self.unread)).map(|_| self.read()).collect()
    }

    /// One command, one answer.
    pub fn ask<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.queue(args);
        self.answers().pop().expect("one answer")
    }

    /// The server's clock.
    pub fn micros(&mut self) -> u64 {
        let Value::Array(parts) = self.ask(&["TIME"]) else { panic!("no time") };
        let part = |at: usize| match &parts[at] {
            Value::Bytes(digits) => String::from_utf8_lossy(digits).parse::<u64>().expect("a number"),
            other => panic!("a number was expected, not {other:?}"),
        };
        part(0) * 1_000_000 + part(1)
    }

    /// An answer that nobody asked for, or the next one.
    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("an answer");
        let (sort, rest) = line.trim_end().split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        match sort {
            "+" => Value::Bytes(rest.into()),
            "-" => Value::error(rest),
            ":" => Value::Int(number()),
            "$" => usize::try_from(number()).map_or(Value::Nil, |length| self.bytes(length)),
            "*" => usize::try_from(number())
                .map_or(Value::Nil, |count| Value::Array((0..count).map(|_| self.read()).collect())),
            _ => panic!("not RESP: {line:?}"),
        }
    }

    fn bytes(&mut self, length: usize) -> Value {
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).expect("the bytes that were announced");
        bytes.truncate(length);
        Value::Bytes(bytes)
    }
}

fn connected(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens at its port");
    stream.set_nodelay(true).expect("a TCP socket");
    stream
}
