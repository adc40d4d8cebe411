//! Who may use the file: its owner alone, unless its directory says that a group shares it. Whatever the umask.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "common/child.rs"]
mod child;
mod common;
#[path = "common/person.rs"]
mod person;

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use bandog_core::op::Verdict;
use child::{Child, listen, say};
use common::{Directory, binary_for_everybody, is_root};
use person::Person;

const FILES: [&str; 4] = ["", "-wal", "-shm", "-bell"];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode() & 0o7777
}

fn modes(path: &Path) -> [u32; 4] {
    FILES.map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        mode(Path::new(&name))
    })
}

/// Opens and uses a store in a process with this umask.
fn use_with(umask: &str, path: &Path) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
    let mut child = Child::start_as(command, &["user", &path.to_string_lossy()]);
    assert_eq!(child.must_hear(), "granted");
    child.tell("release");
    assert_eq!(child.must_hear(), "released");
}

#[test]
fn files_are_private() {
    for umask in ["077", "022", "000"] {
        let directory = Directory::new();
        let path = directory.path().join("state/bandog/locks.db");
        use_with(umask, &path);
        assert_eq!(modes(&path), [0o600; 4], "umask {umask}");
        assert_eq!(mode(&directory.path().join("state")), 0o700, "umask {umask}");
        assert_eq!(mode(&directory.path().join("state/bandog")), 0o700, "umask {umask}");
    }
}

#[test]
fn files_in_a_directory_of_a_group_are_shared() {
    for umask in ["077", "022", "000"] {
        let directory = Directory::new();
        let shared = shared(&directory);
        use_with(umask, &shared.join("locks.db"));
        assert_eq!(modes(&shared.join("locks.db")), [0o660; 4], "umask {umask}");
    }
}

fn shared(directory: &Directory) -> std::path::PathBuf {
    let shared = directory.path().join("shared");
    DirBuilder::new().mode(0o700).create(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o2770)).unwrap();
    shared
}

/// Root can become two users of one group; others can be one user twice, which says less and must hold as well.
#[test]
fn two_users_of_a_group_hand_a_lock_over() {
    let directory = Directory::new();
    let binary = binary_for_everybody(&directory);
    let shared = shared(&directory);
    if is_root() {
        chown(&shared, None, Some(4242)).unwrap();
    }
    let user = |id: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", id, "--regid", id, "--groups", "4242"]).arg(&binary);
        if !is_root() {
            command = Command::new(&binary);
        }
        Child::start_as(command, &["user", &shared.join("locks.db").to_string_lossy()])
    };
    let mut ann = user("65533");
    assert_eq!(ann.must_hear(), "granted");
    let mut bob = user("65532");
    assert_eq!(bob.must_hear(), "queued");
    let pipes = shared.join("locks.db-pipes");
    let names =
        || fs::read_dir(&pipes).map_or(0, |names| names.flatten().filter(|name| name.file_name().len() == 16).count());
    // The holder listens after its first second.
    while names() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(mode(&pipes), 0o2770);
    for pipe in fs::read_dir(&pipes).unwrap().map(|pipe| pipe.unwrap().path()) {
        assert_eq!(mode(&pipe), 0o660, "{}", pipe.display());
    }
    ann.tell("release");
    assert_eq!(ann.must_hear(), "released");
    assert_eq!(bob.must_hear(), "granted");
    let group = |ending: &str| fs::metadata(shared.join(format!("locks.db{ending}"))).unwrap().gid();
    assert!(!is_root() || FILES.map(group) == [4242; 4], "{:?}", FILES.map(group));
}

/// The bell that root makes is for those whose database it is.
#[test]
fn root_takes_nothing_over() {
    let directory = Directory::new();
    use_with("022", &directory.file());
    let bell = directory.path().join("locks.db-bell");
    fs::remove_file(&bell).unwrap();
    let owner = if is_root() { 65533 } else { fs::metadata(directory.file()).unwrap().uid() };
    chown(directory.file(), Some(owner), None).unwrap();
    use_with("022", &directory.file());
    assert_eq!((fs::metadata(&bell).unwrap().uid(), mode(&bell)), (owner, 0o600));
}

#[test]
fn role_of_a_child() {
    let Some(words) = child::words() else { return };
    let me = Person::open(&words[1]);
    let claim = me.ask(600_000);
    if let Verdict::Queued(_) = me.claim("job", &claim) {
        say(format_args!("queued"));
        me.wait(claim.id, std::time::Duration::from_secs(10)).expect("a grant");
    }
    say(format_args!("granted"));
    if listen().is_some() {
        me.release("job", claim.id);
        say(format_args!("released"));
        listen();
    }
}
