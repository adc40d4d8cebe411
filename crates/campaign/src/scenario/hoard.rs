//! Many holds of one process that does nothing else: how its client is, and what they cost. For `healthy` and `holds`.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::args::{Duty, Role, Style};
use crate::clock::nanos;
use crate::crew::{Worker, is_over, wrong};
use crate::meter::{Ran, commands, processor_time};
use crate::report::Report;
use crate::stage::Stage;

use super::puppets::{Terms, duty};

/// The default of every client.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// The default too, in seconds: from round to round of the watchdog.
const PERIOD: f64 = 5.0;

pub(super) struct Hoard<'a> {
    stage: &'a Stage,
    worker: Worker,
    number: u64,
    holds: u64,
}

/// How the client is.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) lost: usize,
    pub(super) rounds: u64,
    pub(super) reconnects: usize,
    /// Of renewal, record, holder, connection, recovery.
    pub(super) findings: [u64; 5],
}

/// What was used up to a time.
#[derive(Debug)]
pub(super) struct Meter {
    at: u64,
    client: Duration,
    server: Duration,
    /// Claims, renewals, looks, others, round trips.
    calls: [u64; 5],
    commands: BTreeMap<String, Ran>,
}

impl<'a> Hoard<'a> {
    /// A process that holds so many locks by now.
    pub(super) fn start(stage: &'a Stage, number: u64, holds: u64, lease: Duration) -> io::Result<Self> {
        let base = duty(stage, Role::Hoard, Terms::new(Style::Async, lease));
        let mut worker = Worker::start(&Duty { locks: holds, number, ..base })?;
        worker.expect("ready")?;
        Ok(Self { stage, worker, number, holds })
    }

    pub(super) fn health(&mut self) -> io::Result<Health> {
        self.worker.tell("health")?;
        let numbers = self.worker.expect("health")?;
        let [held, rounds, reconnects, findings @ ..] = &numbers[..] else { return Err(wrong("no health")) };
        let findings = findings.try_into().map_err(|_| wrong("other checks than five"))?;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let lost = count(self.holds.saturating_sub(*held));
        Ok(Health { lost, rounds: *rounds, reconnects: count(*reconnects), findings })
    }

    pub(super) fn meter(&mut self) -> io::Result<Meter> {
        self.worker.tell("count")?;
        let calls = self.worker.expect("counted")?.try_into().map_err(|_| wrong("other counts than five"))?;
        let server = self.stage.server.pid().as_raw_nonzero().get().unsigned_abs();
        let (client, server) = (processor_time(self.worker.id())?, processor_time(server)?);
        Ok(Meter { at: nanos(), client, server, calls, commands: commands(&self.stage.server) })
    }

    /// Blocks all of its runtime.
    pub(super) fn block(&mut self, length: Duration) -> io::Result<()> {
        self.worker.tell(&format!("block {}", length.as_millis()))?;
        match self.worker.expect("blocked")?[..] {
            [1] => Ok(()),
            _ => Err(wrong("a task that blocked came to harm")),
        }
    }

    /// What every bar must notice: a record that vanishes, and connections that break.
    pub(super) fn harm(&self) {
        let server = &self.stage.server;
        let _: u64 = server.run(&format!("DEL lock:hoard-{}-0", self.number));
        let _: u64 = server.run("CLIENT KILL TYPE pubsub");
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        self.worker.end()
    }
}

impl Health {
    pub(super) fn report_findings(&self, report: &mut Report) {
        let seen = self.findings.map(|count| count.to_string()).join(", ");
        report.bar(
            "findings of the watchdog: renewal, record, holder, connection, recovery",
            "0 each",
            seen,
            self.findings == [0; 5],
        );
    }
}

impl Meter {
    /// What was used since an earlier time, each line with what went on meanwhile.
    pub(super) fn report_since(&self, before: &Self, meanwhile: &str, report: &mut Report) {
        let took = Duration::from_nanos(self.at - before.at).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let each = |count: u64| count as f64 / took;
        let calls: Vec<f64> = self.calls.iter().zip(before.calls).map(|(now, before)| each(now - before)).collect();
        if let [claims, renewals, looks, others, trips] = calls[..] {
            let sum = claims + renewals + looks + others;
            let calls = format!("{sum:.0}: renewals {renewals:.0}, looks {looks:.0}, others {:.1}", claims + others);
            report.figure(format!("{meanwhile}calls to the store per second"), calls);
            let period = trips * PERIOD;
            report.figure(format!("{meanwhile}round trips in 5 s, batches and probes"), format!("{period:.1}"));
        }
        let share = |now: Duration, before: Duration| (now - before).as_secs_f64() * 100.0 / took;
        let (client, server) = (share(self.client, before.client), share(self.server, before.server));
        report.figure(format!("{meanwhile}of one core"), format!("client {client:.1} %, server {server:.1} %"));
        let ran = |name: &str| before.commands.get(name).copied().unwrap_or_default();
        let ran =
            self.commands.iter().map(|(name, now)| (name, now.calls - ran(name).calls, now.micros - ran(name).micros));
        let often: Vec<_> = ran.filter(|(_, calls, _)| each(*calls) >= 0.1).collect();
        let commands = often.iter().map(|(name, calls, micros)| {
            format!("{name} {:.1} of {:.1} µs", each(*calls), each(*micros) / each(*calls))
        });
        let commands = commands.collect::<Vec<_>>().join(", ");
        report.figure(
            format!("{meanwhile}commands per second as the server counts them, those inside scripts too"),
            commands,
        );
    }
}

/// What is counted begins and ends between renewals: at the defaults they come every 10 s after the grant, all at once.
pub(super) const OFF_BEAT: Duration = Duration::from_secs(2);

/// Lets time go by, in view of whoever watches the progress.
pub(super) fn let_pass(stage: &Stage, seconds: u64) -> io::Result<()> {
    for second in 1..=seconds {
        std::thread::sleep(Duration::from_secs(1));
        stage.done(usize::try_from(second).unwrap_or(usize::MAX));
        if is_over() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    Ok(())
}
