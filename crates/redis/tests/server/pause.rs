//! A holder that is stopped past its lease: it knows at its first look, and its token is refused.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use bandog::Locks;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{hasty, locks, ms, on_a_server, soon};

const URL: &str = "BANDOG_TEST_PAUSED_HOLDER";

/// The holder, in a process of its own: says its token, then answers every line with whether it holds.
#[test]
#[ignore = "a part of the test below, which starts it"]
fn paused_holder() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let locks: Locks = runtime.block_on(hasty().connect(&url)).unwrap();
    let guard = runtime.block_on(locks.mutex("job").lease(ms(600)).acquire()).unwrap();
    println!("\ntoken {}", guard.token());
    for line in std::io::stdin().lines() {
        println!("{} {}", line.unwrap(), guard.is_held());
    }
}

#[test]
fn schedule_01_a_holder_is_stopped_past_its_lease() {
    on_a_server(async |server| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["pause::paused_holder", "--exact", "--ignored", "--nocapture"])
            .env(URL, server.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut ask, mut answers) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut answer =
            |start: &str| answers.find_map(|line| Some(line.unwrap().strip_prefix(start)?.to_owned())).unwrap();
        let old: u64 = answer("token ").parse().unwrap();
        writeln!(ask, "before").unwrap();
        assert_eq!(answer("before "), "true");
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        let rival = locks(&server.url()).await;
        let guard = soon("the lease to end", rival.mutex("job").acquire()).await.unwrap();
        let new: u64 = guard.token().to_string().parse().unwrap();
        // Asked while it is stopped, so that this is the first that it sees.
        writeln!(ask, "after").unwrap();
        kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
        let held = answer("after ");
        drop(ask);
        let ended = child.wait().unwrap();
        assert_eq!(held, "false", "it believes that it holds what another holds");
        assert!(new > old, "a resource could not tell them apart");
        assert!(guard.is_held() && ended.success());
    });
}
