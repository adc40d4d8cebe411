//! Where a test plays: a directory with a store, a home and nothing else, and the command lines that were played in it.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use bandog_rig::Server;

use crate::running::{Outcome, Running, until};

/// The program under test.
pub(crate) const BANDOG: &str = env!("CARGO_BIN_EXE_bandog");

static STAGES: AtomicU32 = AtomicU32::new(0);

/// A directory of its own. Removed at the end.
#[derive(Debug)]
pub(crate) struct Stage {
    dir: PathBuf,
    /// Where the locks are, unless they are in a file of the directory.
    pub(crate) server: Option<Server>,
    lines: Cell<u32>,
    /// Every command line so far, with the variables set for it in front.
    pub(crate) played: RefCell<Vec<Vec<String>>>,
    /// Every exit code that was asserted.
    pub(crate) codes: RefCell<Vec<i32>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("bandog-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        // As the kernel shows it: temporary directories are symbolic links on some systems.
        let dir = dir.canonicalize().unwrap();
        Self { dir, server: None, lines: Cell::new(0), played: RefCell::default(), codes: RefCell::default() }
    }

    /// The same on a Redis server of its own; `None` where none is installed.
    pub(crate) fn on_redis(options: &[&str]) -> Option<Self> {
        let server = (!bandog_rig::is_missing()).then(|| Server::with(options));
        let server = server?;
        let mut stage = Self::new();
        stage.server = Some(server);
        Some(stage)
    }

    /// Plays on every store.
    pub(crate) fn each(play: impl Fn(&Self)) {
        [Some(Self::new()), Self::on_redis(&[])].iter().flatten().for_each(play);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The URL of the store.
    pub(crate) fn store(&self) -> String {
        self.server.as_ref().map_or_else(|| self.url("locks.db"), Server::unix_url)
    }

    /// The URL of a store beside it, or one with a query.
    pub(crate) fn url(&self, file: &str) -> String {
        format!("sqlite:{}", self.path(file).display())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command line of `bandog`, split at spaces.
    pub(crate) fn line(&self, words: &str) -> Line<'_> {
        self.program(Path::new(BANDOG)).words(words)
    }

    /// A command line of `dflock`, which is the same program under another name.
    pub(crate) fn dflock(&self, words: &str) -> Line<'_> {
        let link = self.path("dflock");
        if !link.exists() {
            std::os::unix::fs::symlink(BANDOG, &link).unwrap();
        }
        self.program(&link).words(words)
    }

    /// A line for the shell.
    pub(crate) fn shell(&self, script: &str) -> Line<'_> {
        self.program(Path::new("/bin/sh")).arg("-c").arg(script)
    }

    /// A script for bash.
    pub(crate) fn bash(&self, script: &Path) -> Line<'_> {
        self.program(Path::new("bash")).arg(script)
    }

    fn program(&self, program: &Path) -> Line<'_> {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.dir).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("SHELL", "/bin/sh").env("LC_ALL", "C");
        let line = Line { stage: self, command, shown: Vec::new() };
        let config = self.path("config").display().to_string();
        let state = self.path("state").display().to_string();
        line.env("HOME", &self.dir.display().to_string())
            .env("XDG_CONFIG_HOME", &config)
            .env("XDG_STATE_HOME", &state)
            .env("BANDOG_STORE", &self.store())
    }

    /// Holds `job` with the options given until the command's standard input is closed.
    pub(crate) fn hold(&self, options: &str) -> Running<'_> {
        self.line(&format!("run {options} job")).hold()
    }

    /// Whether `job` could be had at once.
    pub(crate) fn is_free(&self) -> bool {
        let outcome = self.line("run -n -q job -- true").run();
        assert!(matches!(outcome.code, Some(0 | 75)), "{outcome:?}");
        outcome.code == Some(0)
    }

    /// Waits until so many wait for `job`.
    pub(crate) fn await_waiters(&self, count: usize) {
        let locks = bandog::blocking::Locks::connect(&self.store()).unwrap();
        until(format_args!("{count} waiters"), || {
            let waiters = locks.inspect("job").unwrap()?.record.waiters.len();
            (waiters == count).then_some(())
        });
    }

    /// Revokes `job`.
    pub(crate) fn revoke(&self, reason: &str) {
        bandog::blocking::Locks::connect(&self.store()).unwrap().revoke("job", reason).unwrap();
    }

    pub(crate) fn removed_store(&self) {
        for ending in ["", "-wal", "-shm", "-bell"] {
            let _ = fs::remove_file(self.path(&format!("locks.db{ending}")));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A command line to be run or started.
#[derive(Debug)]
#[must_use = "run it"]
pub(crate) struct Line<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) command: Command,
    shown: Vec<String>,
}

impl<'a> Line<'a> {
    pub(crate) fn words(mut self, words: &str) -> Self {
        for word in words.split_whitespace() {
            self = self.arg(word);
        }
        self
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        let arg = arg.into();
        self.shown.push(arg.to_string_lossy().into_owned());
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.shown.push(format!("{key}={value}"));
        self.command.env(key, value);
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        self.command.env_remove(key);
        self
    }

    pub(crate) fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// The rest of the line: a shell that runs `script` as the command.
    pub(crate) fn sh(self, script: &str) -> Self {
        self.words("-- sh -c").arg(script)
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Outcome<'a> {
        self.start().wait()
    }

    /// Runs it to its end with `text` on standard input, all of it there before the start: some look only at what is.
    pub(crate) fn fed(mut self, text: &str) -> Outcome<'a> {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        self.command.stdin(reader);
        self.run()
    }

    /// Runs it to its end at a terminal of its own, where somebody types `text`. What it shows is its standard output.
    pub(crate) fn at_terminal(self, columns: u16, text: &str) -> Outcome<'a> {
        let Self { stage, command, shown } = self;
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(24, columns)).unwrap();
        stage.played.borrow_mut().push(shown.clone());
        // The streams are those of the terminal.
        let mut line = pty_process::blocking::Command::new(command.get_program()).args(command.get_args());
        line = line.env_clear().current_dir(command.get_current_dir().unwrap());
        line = line.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let mut child = line.spawn(pts).unwrap();
        pty.write_all(text.as_bytes()).unwrap();
        let mut said = Vec::new();
        // Fails when the last process has closed the terminal.
        let _ = pty.read_to_end(&mut said);
        let code = child.wait().unwrap().code();
        Outcome::new(stage, code, String::from_utf8_lossy(&said).replace("\r\n", "\n"), shown)
    }

    pub(crate) fn piped(mut self) -> Self {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Starts a command that says `ready` and its process id when it runs, `done` when its standard input is closed.
    pub(crate) fn hold(self) -> Running<'a> {
        let running = self.piped().sh("echo ready $$; read _; echo done").start();
        running.await_out("ready");
        running
    }

    /// Starts it, with what it says in files.
    pub(crate) fn start(mut self) -> Running<'a> {
        let number = self.stage.lines.replace(self.stage.lines.get() + 1);
        let file = |name: &str| self.stage.path(&format!("{number}.{name}"));
        let (out, err) = (file("out"), file("err"));
        self.command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        self.stage.played.borrow_mut().push(self.shown.clone());
        let mut child = self.command.spawn().unwrap();
        let stdin = child.stdin.take();
        Running { stage: self.stage, child, stdin, out, err, shown: self.shown }
    }
}
