//! A real server of our own for each test: started on a socket in a temporary folder, killed when dropped.

mod resp;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use resp::Connection;

/// How often to look for the socket, and for how long altogether.
const LOOKS: u32 = 500;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A process that ends with the test.
pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts one, or says loudly that the test is left out.
    pub(crate) fn start(test: &str) -> Option<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let program = program();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bandog-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let mut command = Command::new(&program);
        command
            .args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no"])
            .args(["--dir", "."]);
        match command.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => Some(Self { child, folder }),
            Err(error) => {
                eprintln!("!!! SKIPPED {test}: no {program} here ({error}); set BANDOG_REDIS_SERVER or install it");
                let _ = std::fs::remove_dir_all(&folder);
                None
            }
        }
    }

    pub(crate) fn connect(&self) -> Connection {
        for _ in 0..LOOKS {
            match Connection::open(&self.folder.join("socket")) {
                Ok(connection) => return connection,
                Err(_) => std::thread::sleep(BETWEEN_LOOKS),
            }
        }
        panic!("the server did not open its socket");
    }
}

/// Redis, or Valkey, which answers to the same tests.
fn program() -> String {
    let starts = |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    let default = if !starts("redis-server") && starts("valkey-server") { "valkey-server" } else { "redis-server" };
    std::env::var("BANDOG_REDIS_SERVER").unwrap_or_else(|_| default.into())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
