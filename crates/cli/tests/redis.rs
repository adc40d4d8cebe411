//! The command on a Redis server of its own.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PASSWORD: &str = "s3cret-of-the-test";

struct Server {
    child: Child,
    directory: PathBuf,
}

impl Server {
    /// Starts one, or says loudly that the test is left out.
    fn start() -> Option<Self> {
        let program = std::env::var("BANDOG_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let directory = std::env::temp_dir().join(format!("bandog-cli-redis-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = Command::new(&program);
        command.args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no"]);
        command.args(["--requirepass", PASSWORD]).current_dir(&directory).stdout(Stdio::null());
        let Ok(child) = command.spawn() else {
            eprintln!("!!! SKIPPED: no {program} here; set BANDOG_REDIS_SERVER or install it");
            return None;
        };
        let server = Self { child, directory };
        // There is no handshake with a server that is not there yet.
        while UnixStream::connect(server.directory.join("socket")).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }

    fn bandog(&self, password: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bandog"));
        let url = format!("redis+unix://:{password}@{}/socket", self.directory.display());
        command.env("BANDOG_STORE", url).env("HOME", &self.directory).env_remove("XDG_CONFIG_HOME");
        command.args(words).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.bandog(PASSWORD, words).output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_command_runs_under_a_lock_of_a_redis_server() {
    let Some(server) = Server::start() else { return };
    let alone = server.run(&["run", "job", "--", "sh", "-c", "echo token $BANDOG_TOKEN"]);
    assert!(alone.status.success() && said(&alone).contains("token "), "{}", said(&alone));

    let mut holds = server.bandog(PASSWORD, &["run", "job", "--", "sh", "-c", "echo ready; read -r _ < gate"]);
    let gate = server.directory.join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut held = holds.current_dir(&server.directory).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(held.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");

    let busy = server.run(&["run", "-n", "job", "--", "true"]);
    assert_eq!(busy.status.code(), Some(75), "{}", said(&busy));
    std::fs::write(&gate, "go\n").unwrap();
    assert!(held.wait().unwrap().success());
    assert!(server.run(&["run", "--wait", "5s", "job", "--", "true"]).status.success());

    let wrong = server.bandog("another-s3cret", &["run", "-v", "job", "--", "true"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(69), "{}", said(&wrong));
    assert!(!said(&wrong).contains("s3cret"), "{}", said(&wrong));
}
