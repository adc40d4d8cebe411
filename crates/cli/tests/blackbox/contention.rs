//! Many processes on one lock: no update is lost, and tokens grow from holder to holder.

use std::process::Command;

use crate::running::uptime;
use crate::stage::{BANDOG, Stage};

const PROCESSES: u32 = 8;
const RUNS: u32 = 200;

/// Runs `script` under the lock, `runs` times in each of [`PROCESSES`] processes at once.
fn contend(stage: &Stage, runs: u32, script: &str) {
    let repeat =
        format!("i=0; while [ $i -lt {runs} ]; do {BANDOG} run -q job -- sh -c '{script}' || exit; i=$((i+1)); done");
    let start = || {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&repeat).current_dir(stage.path("")).env_clear();
        shell
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", stage.path(""))
            .env("BANDOG_STORE", stage.store());
        shell.spawn()
    };
    let shells: Vec<_> = (0..PROCESSES).map(|_| start().unwrap()).collect();
    for mut shell in shells {
        assert!(shell.wait().unwrap().success());
    }
}

#[test]
fn eight_processes_lose_no_update_in_1600_runs() {
    let stage = Stage::new();
    stage.write("count", "0\n");
    let began = uptime();
    contend(&stage, RUNS, "n=$(cat count); echo $((n+1)) > count");
    assert_eq!(stage.read("count").trim(), (PROCESSES * RUNS).to_string());
    println!("{} runs in {:.1} s", PROCESSES * RUNS, uptime() - began);
}

#[test]
fn tokens_grow_in_the_order_of_holding() {
    let stage = Stage::new();
    contend(&stage, 10, "echo $BANDOG_TOKEN >> tokens");
    let text = stage.read("tokens");
    let tokens: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(tokens.len(), 80);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

#[test]
fn tickets_and_runs_draw_from_the_same_tokens() {
    let stage = Stage::new();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let text = stage.line("run job").sh("echo $BANDOG_TOKEN").run().is(0).out;
        tokens.push(text.trim().parse::<u64>().unwrap());
        let taken = stage.line("acquire --json job").run().is(0);
        let ticket: serde_json::Value = serde_json::from_str(&taken.out).unwrap();
        tokens.push(ticket["token"].as_str().unwrap().parse().unwrap());
        stage.line("release").fed(ticket["ticket"].as_str().unwrap()).is(0);
    }
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}
