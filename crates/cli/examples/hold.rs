//! A wrapper without a lock, for the tests of the process side: it runs a command under supervision with a lease made
//! up from its arguments, and renews it or not.
//!
//! `hold [--lease MS] [--grace MS] [--policy term|kill|leave] [--renewals N] [--control FIFO] [--log FILE] [--set
//! KEY=VALUE] -- COMMAND…`. Lines written to the FIFO: `lose` (the lease is lost: end within the grace), `kill`,
//! `cease` (renew no more). `hold stamp` prints the time instead.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use bandog::{Clock, Moment};
use bandog_cli::child::{self, Child, Happening, Plan, Policy, Respite};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::time::{Interval, MissedTickBehavior, interval};

type Control = Lines<BufReader<Receiver>>;

fn main() -> ExitCode {
    if let Some(code) = child::role(std::env::args_os().skip(1)) {
        return code;
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == "stamp") {
        println!("{}", Clock::system().now().nanos());
        return ExitCode::SUCCESS;
    }
    let began = Clock::system().now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(Hold::parse().run(began)).map_or_else(
        |error| {
            eprintln!("hold: {error}");
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}

#[derive(Debug)]
struct Hold {
    lease: Duration,
    renewals: u64,
    control: Option<OsString>,
    log: Option<File>,
    plan: Plan,
    until: Moment,
}

impl Hold {
    fn parse() -> Self {
        let plan = Plan {
            program: OsString::new(),
            args: Vec::new(),
            env: Vec::new(),
            policy: Policy::Term,
            respite: Respite { grace: Duration::from_millis(500), margin: Duration::from_millis(100) },
        };
        let lease = Duration::from_secs(60);
        let mut hold = Self { lease, renewals: u64::MAX, control: None, log: None, plan, until: Moment::ZERO };
        let mut args = std::env::args_os().skip(1);
        while let Some(option) = args.next().filter(|option| option != "--") {
            hold.take(option.to_str().expect("an option"), args.next().expect("a value"));
        }
        hold.plan.program = args.next().expect("a command");
        hold.plan.args = args.collect();
        hold
    }

    fn take(&mut self, option: &str, value: OsString) {
        let text = value.to_string_lossy().into_owned();
        let number = || text.parse().expect("a number");
        match option {
            "--lease" => self.lease = Duration::from_millis(number()),
            "--grace" => self.plan.respite.grace = Duration::from_millis(number()),
            "--renewals" => self.renewals = number(),
            "--control" => self.control = Some(value),
            "--log" => self.log = Some(File::options().append(true).create(true).open(value).expect("a log")),
            "--set" => {
                let (key, value) = text.split_once('=').expect("KEY=VALUE");
                self.plan.env.push((key.into(), value.into()));
            }
            "--policy" => {
                self.plan.policy = match &*text {
                    "term" => Policy::Term,
                    "kill" => Policy::Kill,
                    _ => Policy::Leave,
                }
            }
            _ => panic!("unknown option {option}"),
        }
    }

    async fn run(mut self, began: Moment) -> io::Result<u8> {
        let mut prepared = Child::prepare(self.plan.clone()).await?;
        prepared.set("HOLD_BEGAN", began.nanos().to_string());
        self.until = Clock::system().now() + self.lease;
        let mut child = prepared.start(self.until).await?;
        if let Some(refused) = child.refused() {
            eprintln!("{}", refused.why);
        }
        self.note(format_args!("started {} until {}", child.pid(), self.until.nanos()));
        let mut control = self.control.take().map(open);
        let mut beat = interval(self.lease / 3);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let happening = tokio::select! {
                happening = child.next() => happening,
                () = self.renewal(&mut beat) => { self.renew(&mut child); continue }
                line = line(&mut control) => { self.obey(&line, &mut child); continue }
            };
            self.note(format_args!("{happening:?}"));
            match happening {
                Happening::Exited(ending) => return Ok(ending.status.code().unwrap_or(70)),
                Happening::Resumed if Clock::system().now() < self.until => child.resume(),
                Happening::Resumed => child.kill(),
                _ => {}
            }
        }
    }

    async fn renewal(&self, beat: &mut Interval) {
        beat.tick().await;
        if self.renewals == 0 {
            std::future::pending::<()>().await;
        }
    }

    fn renew(&mut self, child: &mut Child) {
        self.renewals -= 1;
        self.until = Clock::system().now() + self.lease;
        child.keep(self.until);
    }

    fn obey(&mut self, line: &str, child: &mut Child) {
        match line {
            "lose" => child.end(Clock::system().now() + self.plan.respite.grace),
            "kill" => child.kill(),
            _ => self.renewals = 0,
        }
        self.note(format_args!("obeyed {line}, until {}", self.until.nanos()));
    }

    fn note(&mut self, line: std::fmt::Arguments<'_>) {
        if let Some(log) = &mut self.log {
            writeln!(log, "{line}").expect("a log to write to");
        }
    }
}

fn open(path: OsString) -> Control {
    // Both ways, so that a writer that closes it does not end the conversation.
    BufReader::new(OpenOptions::new().read_write(true).open_receiver(path).expect("a fifo")).lines()
}

async fn line(control: &mut Option<Control>) -> String {
    let Some(control) = control else { return std::future::pending().await };
    control.next_line().await.expect("a line").expect("no end")
}
