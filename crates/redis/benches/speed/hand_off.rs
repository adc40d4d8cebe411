//! From a release in one process to the hold in another, beside the bare way of a message: a script that publishes, and
//! a process that listens.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bandog_rig::Server;

use crate::Effort;
use crate::figures::{Report, Sides, median};
use crate::player::{Part, ROLE};

/// A hand-off, times the bare message.
const BAR: f64 = 1.3;
/// How many wait beside the one who holds.
const WAITERS: [usize; 3] = [2, 100, 1_000];

pub(crate) fn measure(effort: Effort, report: &mut Report) {
    report.head("µs from release to hold, two processes", "script → subscriber");
    let mut row = |name: &str, part: Part, players: usize, bar: Option<f64>| {
        let mut sides = Sides::default();
        for _ in 0..effort.rounds {
            sides.add(play(effort, Part::Bare, 2), play(effort, part, players));
        }
        report.row(name, &sides, bar);
    };
    row("the bare message with a blocking client", Part::Raw, 2, None);
    for (part, bar) in [(Part::Tasks, Some(BAR)), (Part::Threads, None)] {
        for waiters in WAITERS {
            row(&format!("{waiters} waiters, {}", part.name()), part, waiters + 1, bar);
        }
    }
}

/// The median of one round: two processes with so many players between them.
fn play(effort: Effort, part: Part, players: usize) -> f64 {
    let server = Server::start();
    let processes = [players / 2, players - players / 2];
    let mut number = 0;
    let mut processes = processes.map(|players| {
        number += 1;
        Process::start(&server, part, number - 1, players, effort)
    });
    processes.iter_mut().for_each(Process::ready);
    processes.iter_mut().for_each(Process::go);
    let told = processes.map(Process::holds);
    // It counts once everybody has come, in both.
    let from = told.iter().map(|(from, _)| *from).max().unwrap_or_default();
    let holds = told.into_iter().flat_map(|(_, holds)| holds).filter(|hold| hold.held >= from);
    median(&crossings(holds.collect()))
}

/// One of the two.
struct Process {
    number: usize,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(server: &Server, part: Part, number: usize, players: usize, effort: Effort) -> Self {
        let millis = effort.turns * 2;
        let words = [server.port as usize, number, players, millis].map(|word| word.to_string());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(ROLE).arg(part.name()).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { number, child, input, output }
    }

    fn ready(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }

    fn go(&mut self) {
        self.input.write_all(b"go\n").unwrap();
    }

    fn holds(mut self) -> (u64, Vec<Hold>) {
        let mut lines = self.output.lines().map(|line| line.unwrap());
        let from = lines.next().unwrap().parse().unwrap();
        let holds = lines.map(|line| Hold::read(self.number, &line)).collect();
        assert!(self.child.wait().unwrap().success());
        (from, holds)
    }
}

/// One hold, as its process saw it.
#[derive(Debug, Clone, Copy)]
struct Hold {
    process: usize,
    /// Orders the holds.
    token: u64,
    held: u64,
    left: u64,
}

impl Hold {
    fn read(process: usize, line: &str) -> Self {
        let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        Self { process, token: next(), held: next(), left: next() }
    }
}

/// Microseconds of every hand-off from one process to the other.
fn crossings(mut holds: Vec<Hold>) -> Vec<f64> {
    holds.sort_by_key(|hold| hold.token);
    // The first few find everything cold.
    let pairs = holds.windows(2).skip(20);
    pairs
        .filter(|pair| pair[0].process != pair[1].process)
        .map(|pair| (pair[1].held - pair[0].left) as f64 / 1e3)
        .collect()
}
