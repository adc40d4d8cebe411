//! A PostgreSQL server of the tests: its own directory and port, run by a user who is not root, ended with the process of the tests.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// What the packages of Debian and its kin do with the programs.
const PACKAGES: &str = "/usr/lib/postgresql";

/// Ends the server when its own standard input ends: that is held by the process of the tests, and ends with it, however it ends. The
/// directory goes with the server. One that is starting does not hear a signal yet.
const KEEPER: &str = r#"directory=$1; shift; "$@" & server=$!; read -r _; while kill -QUIT $server; do sleep 0.02; done; wait $server; [ -e "$directory/kept" ] || rm -rf "$directory""#;

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    keeper: Mutex<Child>,
    directory: PathBuf,
    /// Where it listens, on loopback.
    pub port: u16,
    settings: Vec<String>,
    schemas: AtomicU32,
}

/// Whether tests must be left out because there is no PostgreSQL here; as [`is_missing`](crate::is_missing).
///
/// # Panics
/// If there is none, and `BANDOG_TEST_INSTALL=no` was not said.
pub fn is_postgres_missing() -> bool {
    if programs().is_some() {
        return false;
    }
    let allowed = std::env::var_os("BANDOG_TEST_INSTALL").is_some_and(|said| said == "no");
    assert!(allowed, "no PostgreSQL here: install postgresql, or leave these tests out with BANDOG_TEST_INSTALL=no");
    eprintln!("!!! SKIPPED: no PostgreSQL here, and BANDOG_TEST_INSTALL=no");
    true
}

/// Where `initdb` and `postgres` are: of several versions, the newest.
fn programs() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let versions = std::fs::read_dir(PACKAGES).into_iter().flatten().flatten().map(|entry| entry.path());
        let newest = versions.filter(|path| path.join("bin/initdb").is_file()).max_by_key(version);
        newest.map(|path| path.join("bin")).or_else(on_path)
    });
    FOUND.as_deref()
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|directory| directory.join("initdb").is_file())
}

impl Postgres {
    /// The one server of this process; tests tell themselves apart by the schemas that [`url`](Self::url) names.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Postgres> = LazyLock::new(|| Postgres::with(&[]));
        &SHARED
    }

    /// A server with nothing in it.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A server with more settings, such as `max_connections=5`.
    pub fn with(settings: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("bandog-postgres-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        if let Some((user, group)) = somebody() {
            chown(&directory, Some(user), Some(group)).unwrap();
        }
        initialise(&directory);
        // Another test may take the port in between: then it is tried with the next.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if let Some(keeper) = launch(&directory, port, settings) {
                let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
                return Self { keeper: Mutex::new(keeper), directory, port, settings, schemas: AtomicU32::new(0) };
            }
        }
        panic!("no PostgreSQL would start with {settings:?}: {}", words(&directory));
    }

    /// The address of a schema that nobody else uses.
    pub fn url(&self) -> String {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        format!("postgres://bandog@127.0.0.1:{}/postgres?schema=test_{number}", self.port)
    }

    /// Runs statements by `psql`; what it prints, rows as lines and columns between `|`.
    pub fn run(&self, sql: &str) -> String {
        self.psql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements that may fail.
    ///
    /// # Errors
    /// What the server said.
    pub fn try_run(&self, sql: &str) -> Result<(), String> {
        self.psql(sql).map(drop)
    }

    fn psql(&self, sql: &str) -> Result<String, String> {
        let port = self.port.to_string();
        let mut psql = Command::new(programs().unwrap().join("psql"));
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-U",
            "bandog",
            "-d",
            "postgres",
        ]);
        let told = psql.args(["-p", &port, "-c", sql]).output().unwrap();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if told.status.success() { Ok(words(&told.stdout)) } else { Err(words(&told.stderr)) }
    }

    /// Kills the server (SIGKILL), as a machine without power does to it, and starts it again at the same place.
    pub fn kill_and_restart(&self) {
        let mut keeper = self.keeper.lock().unwrap();
        let pid = std::fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        std::fs::write(self.directory.join("kept"), "").unwrap();
        drop(keeper.stdin.take());
        drop(keeper.wait());
        std::fs::remove_file(self.directory.join("kept")).unwrap();
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        // Its children end a moment later, and until then nobody else may begin.
        for _ in 0..200 {
            if let Some(started) = launch(&self.directory, self.port, &settings) {
                *keeper = started;
                return;
            }
        }
        panic!("it does not start again: {}", words(&self.directory));
    }

    /// What the server said so far.
    pub fn log(&self) -> String {
        words(&self.directory)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        drop(keeper.stdin.take());
        drop(keeper.wait());
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

/// A user and a group for the server, which refuses to be run by root.
fn somebody() -> Option<(u32, u32)> {
    let is_root = rustix::process::geteuid().is_root();
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let known = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map_while(|number| number.parse().ok());
        numbers.next().zip(numbers.next())
    };
    is_root.then(|| known("postgres").or_else(|| known("nobody")).expect("a user who is not root"))
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    if let Some((user, group)) = somebody() {
        command.uid(user).gid(group);
    }
    // The directory of builds may be closed to that user.
    command.current_dir("/");
    command
}

fn initialise(directory: &Path) {
    let mut initdb = program(programs().unwrap().join("initdb").to_str().unwrap());
    initdb.args(["--no-sync", "--auth=trust", "--username=bandog", "--encoding=UTF8", "--locale=C", "-D"]);
    let told = initdb.arg(directory.join("data")).output().unwrap();
    assert!(told.status.success(), "initdb: {}", String::from_utf8_lossy(&told.stderr));
}

fn launch(directory: &Path, port: u16, settings: &[&str]) -> Option<Child> {
    let log = std::fs::File::create(directory.join("log")).unwrap();
    let mut keeper = program("sh");
    keeper
        .args(["-c", KEEPER, "sh"])
        .arg(directory)
        .arg(programs().unwrap().join("postgres"))
        .arg("-D")
        .arg(directory.join("data"));
    let ours = [
        format!("port={port}"),
        format!("unix_socket_directories={}", directory.display()),
        "listen_addresses=127.0.0.1".to_owned(),
        // What is killed here is a process and not the machine.
        "fsync=off".to_owned(),
        "shared_buffers=32MB".to_owned(),
        "max_connections=300".to_owned(),
    ];
    for setting in ours.iter().map(String::as_str).chain(settings.iter().copied()) {
        keeper.args(["-c", setting]);
    }
    let mut child = keeper.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    // There is no handshake with a server that is not there yet.
    for _ in 0..2_000 {
        if words(directory).contains("ready to accept connections") && TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        if has_failed(directory) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The directory is tried with again.
    std::fs::write(directory.join("kept"), "").unwrap();
    drop(child.stdin.take());
    drop(child.wait());
    std::fs::remove_file(directory.join("kept")).unwrap();
    None
}

/// Whether it has ended by itself. Those who come while it starts are turned away as fatally.
fn has_failed(directory: &Path) -> bool {
    let is_end = |line: &str| line.contains("FATAL") && !line.contains("the database system is");
    words(directory).lines().any(is_end)
}

fn words(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("log")).unwrap_or_default()
}
