//! `bandog top` at a terminal, with real holders and waiters: what it shows, what keys do, and how it leaves the terminal behind.

use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bandog_rig::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::hold::{LIMIT, Run, eventually, now};
use crate::pty::{CTRL_C, Screen};

/// A store and those who use it.
struct World {
    run: Run,
    url: String,
    _server: Option<Server>,
}

impl World {
    fn sqlite() -> Self {
        let run = Run::new();
        let url = format!("sqlite:{}", run.file("locks.db").display());
        Self { run, url, _server: None }
    }

    /// Nothing where no server is installed.
    fn redis() -> Option<Self> {
        let server = Server::if_installed()?;
        Some(Self { run: Run::new(), url: format!("{}?announce=true", server.url()), _server: Some(server) })
    }

    fn bandog(&self, words: &str) -> Command {
        let mut command = self.run.command(env!("CARGO_BIN_EXE_bandog"));
        command.args(words.split(' ')).env("BANDOG_STORE", &self.url).env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR").env("XDG_CONFIG_HOME", self.run.file("none"));
        command
    }

    /// Starts a process that uses a lock, without a terminal.
    fn start(&self, words: &str) -> User {
        let mut command = self.bandog(words);
        User(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn top(&self, words: &str) -> Top {
        let mut command = self.bandog(&format!("top --every 50ms{words}"));
        command.env("USER", "ann");
        Top { screen: Screen::new(command), size: (24, 80) }
    }
}

/// Somebody who uses a lock. Killed at the end.
struct User(Child);

impl User {
    fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    fn is_over(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `top`, seen through the eyes of a terminal.
struct Top {
    screen: Screen,
    size: (u16, u16),
}

impl Top {
    fn terminal(&self) -> vt100::Parser {
        let [rows, columns] = [self.size.0, self.size.1].map(|size| NonZero::new(size).unwrap());
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(&self.screen.bytes());
        parser
    }

    fn shown(&self) -> String {
        self.terminal().screen().contents()
    }

    /// Waits until all of these words are on the screen.
    fn expect(&self, words: &[&str]) -> String {
        let missing = |shown: &str| words.iter().find(|word| !shown.contains(**word)).map(|word| (*word).to_owned());
        let found = || Some(self.shown()).filter(|shown| missing(shown).is_none());
        eventually_or(found, || {
            let shown = self.shown();
            format!("no {:?} on\n{shown}", missing(&shown))
        })
    }

    fn expect_gone(&self, word: &str) {
        eventually_or(|| (!self.shown().contains(word)).then_some(()), || format!("{word:?} on\n{}", self.shown()));
    }

    fn press(&self, keys: &str) {
        self.screen.type_in(keys);
    }

    /// Waits for its end, with the terminal as it was.
    fn expect_end(mut self, code: i32) {
        assert_eq!(self.screen.leader.wait().unwrap().code(), Some(code));
        eventually("the terminal as it was", || self.screen.is_cooked().then_some(()));
        eventually_or(
            || {
                let terminal = self.terminal();
                let screen = terminal.screen();
                (!screen.alternate_screen() && !screen.hide_cursor()).then_some(())
            },
            || "the screen is not given back".to_owned(),
        );
    }
}

/// As `eventually`, with the picture in the message.
fn eventually_or<T>(mut look: impl FnMut() -> Option<T>, what: impl Fn() -> String) -> T {
    let deadline = now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < deadline, "{}", what());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Everything that can be done, on one store.
fn play(world: &World) {
    let mut first = world.start("run --label first job -- sleep 1000");
    let _other = world.start("run --label elsewhere other -- sleep 1000");
    let top = world.top("");
    top.expect(&["first", "other", "2 locks  2 holders  0 waiters", "by contention"]);
    let _second = world.start("run --label second job -- sleep 1000");
    let shown = top.expect(&["1 waiter  ", "waits"]);
    let (job, other) = (shown.find("\njob ").unwrap(), shown.find("\nother ").unwrap());
    assert!(job < other, "who is waited for stands first:\n{shown}");

    top.press("?");
    top.expect(&["how long the last holds lasted", "Esc close"]);
    top.press("\x1b");
    top.expect_gone("Esc close");
    top.press("s");
    top.expect(&["by time held"]);
    top.press("sss/");
    top.expect(&["filter (* ? [a-z]): "]);
    top.press("oth\r");
    top.expect(&["*oth*  by contention", "1 lock  "]);
    top.expect_gone("\njob ");
    top.press("/");
    top.expect(&["filter (* ? [a-z]): oth"]);
    top.press("\x15\r");
    top.expect(&["2 locks", "\njob "]);

    // The lock of the filter is still the chosen one.
    top.press("g\r");
    top.expect(&["job  held, 1 waiter", "WAITER", "second", "HISTORY", "Esc close  b break"]);
    top.press("b");
    top.expect(&["break job", "(first)  exclusive, held", "reason:"]);
    top.press("stuck since noon\r");
    top.expect(&["reason: stuck since noon", "y break it  n at once  Esc leave it"]);
    assert!(!first.is_over(), "nothing is broken yet");
    top.press("y");
    assert_eq!(first.code(), Some(90));
    top.expect(&["second"]);
    top.expect_gone("break job");
    let shown = world.bandog("show --json job").output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["revocations"][0]["by"]["label"], "ann", "who broke it is remembered: {shown}");

    top.press("\x1b");
    top.expect_end(0);
}

#[test]
fn a_lock_is_seen_and_broken_on_sqlite() {
    play(&World::sqlite());
}

#[test]
fn a_lock_is_seen_and_broken_on_redis() {
    if let Some(world) = World::redis() {
        play(&world);
    }
}

#[test]
fn a_lock_is_ended_at_once_and_alerts_tell_of_it() {
    let world = World::sqlite();
    let _stuck = world.start("run --on-lost notify --label stuck job -- sleep 1000");
    let top = world.top(" --alert-hold 0.1s --alert-waiters 0");
    top.expect(&["job: held for ", "stuck"]);
    let _next = world.start("run --label next job -- sleep 1000");
    top.expect(&["job: 1 waiter"]);
    top.press("bits host is gone\rn");
    top.expect(&["AT ONCE", "y END IT AT ONCE"]);
    top.press("y");
    top.expect(&["ended     ", "at once: its host is gone", "job: ended at once (1)"]);
    top.expect(&["next"]);
    top.press(CTRL_C);
    top.expect_end(0);
}

#[test]
fn a_pause_stops_the_picture() {
    let world = World::sqlite();
    let top = world.top("");
    top.expect(&["no locks: nobody holds or waits for any"]);
    top.press(" ");
    top.expect(&["paused"]);
    let _job = world.start("run job -- sleep 1000");
    let looked = world.bandog("watch --json --every 50ms --for 0.3s").output().unwrap();
    assert!(looked.status.success());
    assert!(top.shown().contains("no locks"), "{}", top.shown());
    // Another filter is another picture.
    top.press("/\r");
    top.expect(&["paused", "1 lock  ", "job"]);
    let _other = world.start("run other -- sleep 1000");
    assert!(world.bandog("watch --json --every 50ms --for 0.3s").output().unwrap().status.success());
    assert!(top.shown().contains("1 lock  "), "{}", top.shown());
    top.press(" ");
    top.expect(&["2 locks", "other"]);
    top.press("q");
    top.expect_end(0);
}

#[test]
fn a_small_terminal_shows_less_and_a_tiny_one_says_so() {
    let world = World::sqlite();
    let _job = world.start("run --label nightly job -- sleep 1000");
    let mut top = world.top("");
    top.expect(&["job", "EVENTS"]);
    for (size, words) in [((10, 40), "WAITERS"), ((9, 30), "too small: 40 x 10 needed"), ((24, 80), "EVENTS")] {
        top.size = size;
        top.screen.resize(size.0, size.1);
        top.expect(&[words]);
    }
    top.press("q");
    top.expect_end(0);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let world = World::sqlite();
    let top = world.top("");
    top.expect(&["no locks"]);
    assert!(!top.screen.is_cooked() && top.terminal().screen().alternate_screen());
    kill_process(Pid::from_child(&top.screen.leader), Signal::TERM).unwrap();
    top.expect_end(0);
}

#[test]
fn an_error_gives_the_terminal_back_or_never_takes_it() {
    let world = World::sqlite();
    let wrong = Screen::new(world.bandog("top --store redis+unix:///nowhere/socket"));
    let mut top = Top { screen: wrong, size: (24, 80) };
    top.expect(&["be reached: No such file"]);
    assert_eq!(top.screen.leader.wait().unwrap().code(), Some(69));
    assert!(!top.terminal().screen().alternate_screen());
}

#[test]
fn colours_are_only_there_where_they_are_wanted() {
    let world = World::sqlite();
    let _job = world.start("run --label nightly job -- sleep 1000");
    let coloured = |command: Command| {
        let top = Top { screen: Screen::new(command), size: (24, 80) };
        // An alert is red.
        top.expect(&["held for "]);
        let terminal = top.terminal();
        let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let is_red = |(row, column)| {
            terminal.screen().cell(row, column).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        };
        cells.into_iter().any(is_red)
    };
    let words = "top --every 50ms --alert-hold 0.01s";
    assert!(coloured(world.bandog(words)));
    let mut without = world.bandog(words);
    without.env("NO_COLOR", "1");
    assert!(!coloured(without));
}
