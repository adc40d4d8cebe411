//! A redis-server of one test: its own directory, a free port and a socket, ended by its process id.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bandog_redis::Value;
use redis::{Connection, FromRedisValue, IntoConnectionInfo};
use rustix::process::{Pid, Signal, kill_process};

use crate::{Raw, WallClock};

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Mutex<Child>,
    directory: PathBuf,
    /// Where it listens, on loopback.
    pub port: u16,
    options: Vec<String>,
    clock: Option<Arc<WallClock>>,
}

/// Whether a test must be left out because there is no server here. Somebody must have said that things may be missing: a suite that
/// leaves out half of itself in silence proves nothing.
///
/// # Panics
/// If there is no server, and `BANDOG_TEST_INSTALL=no` was not said.
pub fn is_missing() -> bool {
    if is_installed() {
        return false;
    }
    let allowed = std::env::var_os("BANDOG_TEST_INSTALL").is_some_and(|said| said == "no");
    assert!(
        allowed,
        "no {} here: install it, name another with BANDOG_REDIS_SERVER, or leave these tests out with BANDOG_TEST_INSTALL=no",
        program()
    );
    eprintln!("!!! SKIPPED: no {} here, and BANDOG_TEST_INSTALL=no", program());
    true
}

/// Whether a server can be started here.
pub fn is_installed() -> bool {
    starts(&program())
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// Redis, or Valkey, which answers to the same tests.
fn program() -> String {
    let default = if !starts("redis-server") && starts("valkey-server") { "valkey-server" } else { "redis-server" };
    std::env::var("BANDOG_REDIS_SERVER").unwrap_or_else(|_| default.into())
}

/// Tests use `DEBUG` and move the directory. Servers before 7.0 allow both, and start with no option that they do not know.
const PERMISSIONS: &[&str] = &["--enable-debug-command", "yes", "--enable-protected-configs", "yes"];

fn asks_for_more() -> bool {
    version() >= (7, 0)
}

/// The server's version: its two first numbers.
pub fn version() -> (u32, u32) {
    static VERSION: LazyLock<(u32, u32)> = LazyLock::new(|| {
        let told = Command::new(program()).arg("--version").output().expect("redis-server is installed").stdout;
        let told = String::from_utf8_lossy(&told).into_owned();
        let numbers = told.split("v=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        let mut numbers = numbers.split('.').map_while(|number| number.parse().ok());
        numbers.next().zip(numbers.next()).unwrap_or_else(|| panic!("no version in {told:?}"))
    });
    *VERSION
}

impl Server {
    /// A server with nothing in it.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A server with nothing in it; `None` where [`is_missing`] leaves the test out.
    pub fn if_installed() -> Option<Self> {
        (!is_missing()).then(Self::start)
    }

    /// A server with more options.
    pub fn with(options: &[&str]) -> Self {
        Self::try_with(options).unwrap_or_else(|log| panic!("no redis-server would start with {options:?}: {log}"))
    }

    /// The same, or its last words if it does not start with them: not every server can do everything.
    ///
    /// # Errors
    /// What the server said.
    pub fn try_with(options: &[&str]) -> Result<Self, String> {
        Self::begin(options, None)
    }

    /// A server with a clock that can be moved.
    pub fn by(clock: &Arc<WallClock>) -> Self {
        let started = Self::begin(&[], Some(Arc::clone(clock)));
        started.unwrap_or_else(|log| panic!("no redis-server would start with a moved clock: {log}"))
    }

    fn begin(options: &[&str], clock: Option<Arc<WallClock>>) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("bandog-store-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        // Another test may take the port in between: then it is tried with the next.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
            if let Some(child) = launch(&directory, port, &options, clock.as_deref()) {
                return Ok(Self { child: Mutex::new(child), directory, port, options, clock });
            }
        }
        let words = last_words(&directory);
        drop(std::fs::remove_dir_all(&directory));
        Err(words)
    }

    /// Its address over TCP.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its address as a socket.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Its directory: the socket, the log, what it saves.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A connection that is not the store's.
    pub fn connection(&self) -> Connection {
        let address = redis::ConnectionAddr::Unix(self.socket()).into_connection_info().unwrap();
        redis::Client::open(address).unwrap().get_connection().unwrap()
    }

    /// Runs one command, given as words.
    pub fn run<T: FromRedisValue>(&self, words: &str) -> T {
        self.try_run(words).unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    /// The connections that listen for news, by id.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn listeners(&self) -> Vec<String> {
        self.named("bandog-news")
    }

    /// Cuts the connections of this name, `bandog` or `bandog-news`; how many there were.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn cut(&self, name: &str) -> usize {
        let connections = self.named(name);
        // One may have gone by itself.
        connections.iter().for_each(|id| drop(self.try_run::<u32>(&format!("CLIENT KILL ID {id}"))));
        connections.len()
    }

    /// Those of them that have subscribed to something.
    fn named(&self, name: &str) -> Vec<String> {
        let (clients, name): (String, _) = (self.run("CLIENT LIST TYPE pubsub"), format!(" name={name} "));
        let named = clients.lines().filter(|line| line.contains(&name));
        named.filter_map(|line| Some(line.split(' ').next()?.strip_prefix("id=")?.to_owned())).collect()
    }

    /// Runs one command, given as words, whatever it answers but a refusal.
    pub fn tell(&self, words: &str) {
        let _: redis::Value = self.run(words);
    }

    /// The same, with the refusal if there is one.
    pub fn try_run<T: FromRedisValue>(&self, words: &str) -> redis::RedisResult<T> {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query(&mut self.connection())
    }

    /// Keeps it busy with a script without end, until it is ended or told `SCRIPT KILL`. Returns when it answers BUSY.
    pub fn keep_busy(&self) {
        self.tell("CONFIG SET lua-time-limit 1");
        let mut endless = UnixStream::connect(self.socket()).unwrap();
        endless.write_all(b"EVAL \"while true do end\" 0\r\n").unwrap();
        let mut asking = Raw::unix(self);
        while !matches!(asking.ask(&["PING"]), Value::Error(_)) {}
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child.lock().unwrap())
    }

    /// How many keys there are, tombstones included.
    pub fn size(&self) -> usize {
        self.run("DBSIZE")
    }

    /// Stops the process (SIGSTOP).
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends the server and starts it again at the same place: empty, unless somebody saved.
    pub fn restart(&self) {
        self.restart_with(&[]);
    }

    /// The same, with more options.
    pub fn restart_with(&self, more: &[&str]) {
        let mut child = self.child.lock().unwrap();
        end(&mut child);
        let options: Vec<String> = self.options.iter().cloned().chain(more.iter().map(|&it| it.to_owned())).collect();
        *child = launch(&self.directory, self.port, &options, self.clock.as_deref())
            .unwrap_or_else(|| panic!("it does not start again: {}", last_words(&self.directory)));
    }

    /// Ends the server for good.
    pub fn kill(&self) {
        // Also after a test that failed while it restarted the server.
        end(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

fn end(child: &mut Child) {
    // A process that has ended already cannot be killed.
    drop(child.kill());
    drop(child.wait());
}

fn last_words(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("log")).unwrap()
}

fn launch(directory: &Path, port: u16, options: &[String], clock: Option<&WallClock>) -> Option<Child> {
    let socket = directory.join("socket");
    drop(std::fs::remove_file(&socket));
    let log = std::fs::File::create(directory.join("log")).unwrap();
    let mut child = Command::new(program())
        .args(["--port", &port.to_string(), "--unixsocket"])
        .arg(&socket)
        .args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir"])
        .arg(directory)
        .args(if asks_for_more() { PERMISSIONS } else { &[] })
        .args(options)
        .envs(clock.map(WallClock::environment).unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("redis-server is installed");
    // There is no handshake with a server that is not there yet.
    for _ in 0..2_000 {
        if UnixStream::connect(&socket).is_ok() {
            return Some(child);
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    end(&mut child);
    None
}
