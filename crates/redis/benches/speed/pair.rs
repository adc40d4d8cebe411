//! A free lock, acquired and released by one task.

use bandog::Locks;
use bandog_core::name::LockName;
use bandog_rig::{Raw, Server};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::runtime::{Builder, Runtime};

use crate::Effort;
use crate::figures::{Report, Sides, median, now};
use crate::floor::Floor;

/// An uncontended pair, times the blocking client's with the same scripts.
const BAR: f64 = 1.15;

pub(crate) fn measure(effort: Effort, report: &mut Report) {
    report.head("µs per acquire + release, TCP", "raw client");
    let anywhere = sched_getaffinity(None).unwrap();
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    row(effort, report, "redis-rs, one thread", None, &mut bare(one));
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    row(effort, report, "async, one thread", Some(BAR), &mut tasks(one));
    let two = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    row(effort, report, "redis-rs, 2 workers", None, &mut bare(two));
    let two = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    row(effort, report, "async, 2 workers", None, &mut tasks(two));
    row(effort, report, "blocking", None, &mut |server: &Server| {
        let locks = bandog::blocking::Locks::connect(&server.url()).unwrap();
        let lock = locks.mutex("job");
        Box::new(move |turns| timed(turns, || lock.acquire().unwrap().release().unwrap()))
    });
    sched_setaffinity(None, &anywhere).unwrap();
}

/// Measures so many turns and gives the median of one.
type Round = Box<dyn FnMut(usize) -> f64>;

fn tasks(runtime: Runtime) -> impl FnMut(&Server) -> Round {
    let runtime = std::sync::Arc::new(runtime);
    move |server| {
        let locks = runtime.block_on(Locks::connect(&server.url())).unwrap();
        let (lock, runtime) = (locks.mutex("job"), std::sync::Arc::clone(&runtime));
        Box::new(move |turns| {
            let lock = lock.clone();
            // As a task among others: the thread that blocks on a runtime is not one of its workers.
            let task = runtime.spawn(async move {
                let mut times = Vec::with_capacity(turns);
                for _ in 0..turns {
                    let start = now();
                    lock.acquire().await.unwrap().release().await.unwrap();
                    times.push((now() - start) as f64 / 1e3);
                }
                median(&times)
            });
            runtime.block_on(task).unwrap()
        })
    }
}

/// The async client beneath, with the same scripts and nothing around it.
fn bare(runtime: Runtime) -> impl FnMut(&Server) -> Round {
    let runtime = std::sync::Arc::new(runtime);
    move |server| {
        let (floor, runtime) =
            (std::sync::Arc::new(Floor::new(Raw::tcp(server.port))), std::sync::Arc::clone(&runtime));
        let client = redis::Client::open(server.url()).unwrap();
        let connection = runtime.block_on(client.get_multiplexed_async_connection()).unwrap();
        Box::new(move |turns| {
            let (floor, mut connection, name) =
                (std::sync::Arc::clone(&floor), connection.clone(), LockName::new("bare").unwrap());
            let task = runtime.spawn(async move {
                let mut times = Vec::with_capacity(turns);
                for _ in 0..turns {
                    let start = now();
                    for words in floor.words(&name) {
                        let mut command = redis::Cmd::new();
                        for word in words {
                            command.arg(word);
                        }
                        connection.send_packed_command(&command).await.unwrap();
                    }
                    times.push((now() - start) as f64 / 1e3);
                }
                median(&times)
            });
            runtime.block_on(task).unwrap()
        })
    }
}

/// Puts client and server on a processor each. Left alone they sometimes share one, where a request takes a third of the time,
/// and which of the two sides has that luck changes from round to round.
fn apart(server: &Server) {
    for (process, processor) in [(None, 0), (Some(server.pid()), 1)] {
        let mut only = CpuSet::new();
        only.set(processor);
        sched_setaffinity(process, &only).unwrap();
    }
}

fn row(effort: Effort, report: &mut Report, name: &str, bar: Option<f64>, prepare: &mut dyn FnMut(&Server) -> Round) {
    let server = Server::start();
    apart(&server);
    let (mut ours, mut floor) = (prepare(&server), Floor::new(Raw::tcp(server.port)));
    let free = LockName::new("free").unwrap();
    let mut raw = |turns| timed(turns, || floor.pair(&free));
    raw(effort.turns / 5);
    ours(effort.turns / 5);
    let mut sides = Sides::default();
    for _ in 0..effort.rounds {
        sides.add(raw(effort.turns), ours(effort.turns));
    }
    report.row(name, &sides, bar);
}

fn timed(turns: usize, mut turn: impl FnMut()) -> f64 {
    let times: Vec<f64> = (0..turns)
        .map(|_| {
            let start = now();
            turn();
            (now() - start) as f64 / 1e3
        })
        .collect();
    median(&times)
}
