//! What a process and a server have used so far: processor time, and commands by name.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bandog_rig::Server;

use crate::crew::wrong;

/// The processor time of all threads of a process. The kernel tells it in hundredths of a second.
pub(crate) fn processor_time(process: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // Behind the name, which may hold anything: state is the first word, user and system time the 12th and 13th.
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks = words.map(str::parse::<u64>).sum::<Result<u64, _>>().map_err(|_| wrong("an unknown /proc/PID/stat"))?;
    Ok(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// The same, of a process that sleeps most of the time: the scheduler counts in nanoseconds. Nothing for one that is gone.
pub(crate) fn scheduled(process: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split_whitespace().next()?.parse().ok()).map(Duration::from_nanos).sum()
}

/// What a server has run of one command.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ran {
    pub(crate) calls: u64,
    pub(crate) micros: u64,
}

/// What a server has run, by name. Commands that scripts call are among them, as Redis counts them.
pub(crate) fn commands(server: &Server) -> BTreeMap<String, Ran> {
    let text: String = server.run("INFO commandstats");
    text.lines().filter_map(|line| command(line.trim())).collect()
}

fn command(line: &str) -> Option<(String, Ran)> {
    let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let field = |name: &str| rest.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
    Some((name.to_owned(), Ran { calls: field("calls")?, micros: field("usec")? }))
}
