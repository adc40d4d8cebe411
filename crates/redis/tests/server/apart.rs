//! A client in a process of its own, which can be stopped and killed: this test binary once more, told line by line what to do.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bandog::{Guard, GuardState, Locks};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{hasty, ms};

const URL: &str = "BANDOG_TEST_CLIENT_APART";

/// The lease of what it acquires.
pub(crate) const LEASE: std::time::Duration = ms(1_500);

/// The process; killed when dropped.
pub(crate) struct Apart {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Apart {
    pub(crate) fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["apart::client_apart", "--exact", "--ignored", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from).lines() }
    }

    /// Tells it something that it does as soon as it runs.
    pub(crate) fn tell(&mut self, word: &str) {
        writeln!(self.to, "{word}").unwrap();
    }

    /// What it answered to that.
    pub(crate) fn hear(&mut self, word: &str) -> String {
        let start = format!("{word} ");
        self.from.find_map(|line| Some(line.unwrap().strip_prefix(&start)?.to_owned())).expect(word)
    }

    pub(crate) fn ask(&mut self, word: &str) -> String {
        self.tell(word);
        self.hear(word)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    pub(crate) fn go_on(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// Ends it without a word (SIGKILL).
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // A process that has ended already cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.end();
    }
}

/// The other side.
#[test]
#[ignore = "a part of other tests, which start it"]
fn client_apart() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let locks: Locks = runtime.block_on(hasty().connect(&url)).unwrap();
    let mut held: Option<Guard> = None;
    // Should it hang, whoever waits for its answer hears that it ended.
    std::thread::spawn(|| {
        std::thread::sleep(std::time::Duration::from_secs(60));
        std::process::exit(3);
    });
    println!();
    for word in std::io::stdin().lines().map(Result::unwrap) {
        let guard = || held.as_ref().expect("acquired before");
        let answer = match word.as_str() {
            "acquire" => {
                held = Some(runtime.block_on(locks.mutex("job").lease(LEASE).acquire()).unwrap());
                held.as_ref().unwrap().token().to_string()
            }
            "wait" => {
                let locks = locks.clone();
                runtime.spawn(async move { std::mem::forget(locks.mutex("job").fair().acquire().await) });
                "begun".to_owned()
            }
            "look" => format!("{} {}", guard().is_held(), matches!(guard().state(), GuardState::Lost { .. })),
            "write" => guard().token().to_string(),
            "forget" => {
                std::mem::forget(held.take());
                "done".to_owned()
            }
            _ => panic!("{word:?}?"),
        };
        println!("{word} {answer}");
    }
}
