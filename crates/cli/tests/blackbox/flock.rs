//! The cases of util-linux's own tests of flock(1) (`tests/ts/flock`), told again, and the idioms of its manual page. Each is a script that finds the
//! command as `$F`; where this machine has flock(1), it plays them too, and must print the same.

use std::process::Command;

use crate::stage::Stage;

/// Whether the flock(1) of this machine can play a case.
#[derive(Clone, Copy)]
enum Theirs {
    /// Every one of this century.
    Any,
    /// From util-linux 2.41 on: `--fcntl` and `--fd`.
    New,
    /// It does something else, which `docs/command.md` tells.
    Differs,
}

use Theirs::{Any, Differs, New};

/// A shared lock that is held in the background until `let_go`. Nothing sleeps: fifos say when it is held and when it is over.
const HELD: &str = r#"
mkfifo go held; exec 5<> go 6<> held
"$F" $API --shared lockfile sh -c 'echo held >&6; read _ <&5; echo Unlocking' & read _ <&6
let_go() { echo >&5; wait; }
do_lock() { "$F" $API $1 lockfile echo "$2"; echo "[rc=$?]"; }
"#;

/// What a script prints on standard output.
const CASES: &[(&str, Theirs, &str, &str)] = &[
    ("non-block", Any, "do_lock '--nonblock --conflict-exit-code 123' never; let_go", "[rc=123]\nUnlocking\n"),
    ("no-fork", Any, "do_lock '--no-fork --nonblock -E 123' never; let_go", "[rc=123]\nUnlocking\n"),
    ("shared", Any, "do_lock --shared 'Have shared lock'; let_go", "Have shared lock\n[rc=0]\nUnlocking\n"),
    ("exclusive", Any, "do_lock '--nb --exclusive --conflict-exit-code 123' never; let_go", "[rc=123]\nUnlocking\n"),
    (
        "fd",
        Any,
        "exec 4<> lockfile; \"$F\" $API -n -x -E 123 4; echo \"[rc=$?]\"; [ -f 4 ] && echo made; let_go",
        "[rc=123]\nUnlocking\n",
    ),
    (
        "timeout that is over",
        Any,
        "do_lock '--timeout 0.1 --conflict-exit-code 5' never; let_go",
        "[rc=5]\nUnlocking\n",
    ),
    (
        "timeout that is not over",
        Any,
        "{ do_lock '--timeout 50 -E 5' 'After timeout.'; } & waits=$!; echo >&5; wait $waits; wait",
        "Unlocking\nAfter timeout.\n[rc=0]\n",
    ),
    ("fcntl: non-block", New, "API=--fcntl; do_lock '--nonblock --shared' both; let_go", "both\n[rc=0]\nUnlocking\n"),
    // There, a lock of fcntl(2) and one of flock(2) do not see each other.
    (
        "fcntl beside flock",
        Differs,
        "\"$F\" --fcntl -n -x -E 123 lockfile echo 'flock vs fcntl'; echo \"[rc=$?]\"; let_go",
        "[rc=123]\nUnlocking\n",
    ),
    (
        "unlock",
        Any,
        "let_go; exec 7<> lockfile; \"$F\" --exclusive --nonblock --verbose 7; \"$F\" --unlock 7; \"$F\" --exclusive --wait 0 --verbose lockfile true",
        "Unlocking\nF: getting lock took <n> seconds\nF: getting lock took <n> seconds\nF: executing true\n",
    ),
    (
        "close",
        New,
        "let_go; exec 7<> lockfile; \"$F\" -x --close --fd 7 --command \"$F -x -n --fd 7 true\" 2> /dev/null; echo \"exit code: $?\"; \"$F\" -x --fd 7 --command \"$F -x -n --fd 7 true\"; echo \"exit code: $?\"",
        "Unlocking\nexit code: 65\nexit code: 0\n",
    ),
    (
        "range-lock",
        Differs,
        "let_go; \"$F\" --shared --fcntl --start 1 --length 2 . true 2> /dev/null; echo \"[rc=$?]\"",
        "Unlocking\n[rc=64]\n",
    ),
    // The manual page.
    ("a block", Any, "let_go; ( \"$F\" -n 9 || exit 1; echo in; ) 9> mylockfile; echo $?", "Unlocking\nin\n0\n"),
    (
        "a shell",
        Any,
        "let_go; exec 4<> mylockfile; \"$F\" -n 4; echo $?; \"$F\" -n mylockfile true; echo $?",
        "Unlocking\n0\n1\n",
    ),
    (
        "a script that locks itself",
        Any,
        "let_go; echo '[ \"${FLOCKER}\" != \"$0\" ] && exec env FLOCKER=\"$0\" \"$F\" -en \"$0\" sh \"$0\" \"$@\" || :; echo \"alone with $1\"; \"$F\" -n \"$0\" true; echo $?' > self; sh ./self words",
        "Unlocking\nalone with words\n1\n",
    ),
    ("a command with its words", Any, "let_go; \"$F\" -x local-lock-file echo 'a b c'", "Unlocking\na b c\n"),
    ("a text of the shell", Any, "let_go; \"$F\" file -c 'exit 7'; echo $?", "Unlocking\n7\n"),
    (
        "no wait wins",
        Any,
        "\"$F\" -n -w 60 lockfile true; echo $?; \"$F\" -w 0 lockfile true; echo $?; let_go",
        "1\n1\nUnlocking\n",
    ),
    (
        "wrong usage",
        Any,
        "let_go; for w in '' '--wat f true' '-w x f true' '-E 256 f true' 'f -c a b' nine; do \"$F\" $w 2> /dev/null; echo $?; done",
        "Unlocking\n64\n64\n64\n64\n64\n64\n",
    ),
    ("nothing open", Any, "let_go; \"$F\" 9 2> /dev/null; echo $?", "Unlocking\n65\n"),
    (
        "a command that is not there",
        Differs,
        "let_go; \"$F\" file no-such-command 2> /dev/null; echo $?",
        "Unlocking\n127\n",
    ),
    ("a folder that is not there", Differs, "let_go; \"$F\" nowhere/file true 2> /dev/null; echo $?", "Unlocking\n0\n"),
    ("a command ended by a signal", Any, "let_go; \"$F\" file sh -c 'kill -TERM $$'; echo $?", "Unlocking\n143\n"),
];

/// What the script printed. The numbers and the name of the command are made the same.
fn played(program: &str, script: &str, stage: &Stage) -> String {
    let outcome = stage.shell(&format!("{HELD}{script}")).env("F", program).env("API", "").run().silent();
    let name = program.rsplit('/').next().unwrap();
    let same = |line: &str| match line.strip_prefix(&format!("{name}: ")) {
        Some(rest) if rest.ends_with(" seconds") => "F: getting lock took <n> seconds\n".to_owned(),
        Some(rest) => format!("F: {rest}\n"),
        None => format!("{line}\n"),
    };
    outcome.out.lines().map(same).collect()
}

#[test]
fn the_cases_of_util_linux_come_out_as_they_do_there() {
    for (name, _, script, printed) in CASES {
        let stage = Stage::new();
        // Makes the link.
        let _ = stage.dflock("");
        let program = stage.path("dflock").display().to_string();
        assert_eq!(played(&program, script, &stage), *printed, "{name}");
    }
}

/// What is asserted of ours is what theirs does, where this machine has it.
#[test]
fn the_cases_are_true_of_flock_itself() {
    let Ok(version) = Command::new("flock").arg("--version").output() else { return };
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let mut numbers =
        version.rsplit(' ').next().unwrap_or_default().split('.').map_while(|part| part.trim().parse::<u32>().ok());
    let is_new = (numbers.next(), numbers.next()) >= (Some(2), Some(41));
    for (name, theirs, script, printed) in CASES {
        let plays = matches!(theirs, Any) || matches!(theirs, New) && is_new;
        if plays {
            assert_eq!(played("flock", script, &Stage::new()), *printed, "{name} with {version}");
        }
    }
}
