//! Who used the processors meanwhile: the contenders, the server, and everybody else; and how much memory.

use peers::clock::now;

/// What the kernel has counted so far, in seconds of one processor.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    at: u64,
    busy: f64,
    own: f64,
    server: f64,
    clients: f64,
}

/// Between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) wall: f64,
    pub(crate) clients: f64,
    pub(crate) server: f64,
    /// Neither ours, nor the server's, nor the contenders'; the hypervisor's theft is in it.
    pub(crate) other: f64,
}

impl Reading {
    pub(crate) fn take(server: u32, clients: &[u32]) -> Self {
        let clients = clients.iter().map(|process| process_seconds(*process)).sum();
        let own = process_seconds(std::process::id());
        Self { at: now(), busy: busy_seconds(), own, server: process_seconds(server), clients }
    }

    /// `done` is what the contenders had used when their games were over; what they do for their reports is nobody else's.
    pub(crate) fn until(&self, later: &Self, done: f64) -> Used {
        let server = later.server - self.server;
        let other = later.busy - self.busy - (later.clients - self.clients) - server - (later.own - self.own);
        Used { wall: (later.at - self.at) as f64 / 1e9, clients: done - self.clients, server, other: other.max(0.0) }
    }
}

fn ticks() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// User, nice, system, irq, softirq and steal of all processors.
fn busy_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let fields: Vec<f64> = line.split_whitespace().skip(1).map(|word| word.parse().unwrap_or_default()).collect();
    [0, 1, 2, 5, 6, 7].iter().filter_map(|at| fields.get(*at)).sum::<f64>() / ticks()
}

/// User and system time of all threads, and of children that have ended: flock(1) is one.
pub(crate) fn process_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything.
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(4);
    words.filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() / ticks()
}

/// A line of /proc/PID/status in KiB: `VmRSS` or `VmHWM`.
pub(crate) fn memory_kib(process: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
