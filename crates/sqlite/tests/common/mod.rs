//! What the tests of the store share: directories that go away, a machine whose clocks are set by hand, clients.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bandog_conformance::Passage;
use bandog_conformance::bench::BoxFuture;
use bandog_core::time::{LeaseTime, WallTime};
use bandog_sqlite::{BootId, Host, Settings, SqliteStore};

/// A directory that is removed with its files.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// Where files are in memory, if there is such a place: no disk that is busy with other things takes part.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::within(memory) } else { Self::new() }
    }

    fn within(place: &Path) -> Self {
        let name = format!("bandog-{}-{:016x}", std::process::id(), getrandom::u64().expect("random numbers"));
        let path = place.join(name);
        std::fs::create_dir(&path).expect("a directory for the test");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The file for the store.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("locks.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Who may do anything, and so has to become somebody else to be refused something.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").expect("a process").uid() == 0
}

/// A copy of this test binary where everybody may run it: the directory of builds may be closed.
pub(crate) fn binary_for_everybody(directory: &Directory) -> PathBuf {
    let copy = directory.path().join("test");
    // By another process: a child that this one starts meanwhile would have the copy open for writing, and then it cannot be run.
    let copied = Command::new("cp").arg(std::env::current_exe().expect("the test binary")).arg(&copy).status();
    assert!(copied.is_ok_and(|status| status.success()), "a copy");
    for path in [&copy, directory.path()] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
    }
    copy
}

/// The worker closes the file after its last handle has gone.
pub(crate) fn wait_until_closed(path: &Path) {
    let is_open = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|target| target.to_string_lossy().starts_with(&*path.to_string_lossy()))
    };
    while is_open() {
        std::thread::yield_now();
    }
}

/// A machine whose clocks stand still until they are moved.
#[derive(Debug)]
pub(crate) struct Machine {
    lease: AtomicU64,
    wall: AtomicU64,
    boot: AtomicU64,
    is_hidden: AtomicBool,
}

impl Machine {
    pub(crate) fn new() -> Arc<Self> {
        let (lease, wall) = (AtomicU64::new(1_000_000), AtomicU64::new(1_767_225_600_000_000));
        Arc::new(Self { lease, wall, boot: AtomicU64::new(1), is_hidden: AtomicBool::new(false) })
    }

    /// Lets time pass on both clocks.
    pub(crate) fn pass(&self, length: Duration) {
        self.lease.fetch_add(u64::try_from(length.as_millis()).unwrap(), Ordering::SeqCst);
        self.wall.fetch_add(u64::try_from(length.as_micros()).unwrap(), Ordering::SeqCst);
    }

    /// Steps the wall clock alone, by microseconds.
    pub(crate) fn step_wall(&self, by: i64) {
        self.wall.fetch_add(by.cast_unsigned(), Ordering::SeqCst);
    }

    /// Boots again: another boot, and a lease clock that starts anew.
    pub(crate) fn reboot(&self) {
        self.boot.fetch_add(1, Ordering::SeqCst);
        self.lease.store(5_000, Ordering::SeqCst);
    }

    /// Gives the boot another name, and nothing else.
    pub(crate) fn rename_boot(&self) {
        self.boot.fetch_add(1, Ordering::SeqCst);
    }

    /// From now on the boot has no name that can be trusted.
    pub(crate) fn hide_boot(&self) {
        self.is_hidden.store(true, Ordering::SeqCst);
    }

    pub(crate) fn settings(self: &Arc<Self>) -> Settings {
        Settings { host: Arc::clone(self) as Arc<dyn Host>, ..Settings::default() }
    }

    pub(crate) fn open(self: &Arc<Self>, path: impl AsRef<Path>) -> SqliteStore {
        SqliteStore::with(path, self.settings()).unwrap_or_else(|error| panic!("open: {error}"))
    }
}

impl Host for Machine {
    fn lease(&self) -> LeaseTime {
        LeaseTime::from_millis(self.lease.load(Ordering::SeqCst))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_micros(self.wall.load(Ordering::SeqCst))
    }

    fn boot(&self) -> io::Result<Option<BootId>> {
        let boot = BootId(self.boot.load(Ordering::SeqCst).into());
        Ok((!self.is_hidden.load(Ordering::SeqCst)).then_some(boot))
    }
}

/// Time on a machine that is moved by hand.
#[derive(Debug)]
pub(crate) struct ByHand(pub(crate) Arc<Machine>);

impl Passage for ByHand {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        self.0.pass(length);
        Box::pin(std::future::ready(()))
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Time that is slept through.
#[derive(Debug)]
pub(crate) struct Asleep;

impl Passage for Asleep {
    fn pass(&self, length: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(length))
    }

    fn patience(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_secs(2)))
    }
}
