//! The command as a library, for its own binary and tests: nothing here is a promise to other crates.

pub mod args;
pub mod child;
mod connect;
mod dflock;
pub mod exit;
mod grace;
mod held;
mod keep;
mod note;
mod pages;
mod run;
mod say;
mod scene;
mod settings;
mod signals;
mod tickets;
mod wait;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use args::{Cli, Command, StoreArgs};
use clap::error::ErrorKind;
use exit::Exit;
use say::{Failure, Say};
use settings::Settings;

/// Does what the arguments say; the first is the name under which the command was called.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let parsed = if is_dflock(&args) { dflock::translate(&args) } else { Ok(args.clone()) };
    match parsed.and_then(|args| settings::parse(&args)) {
        Ok((cli, settings)) => perform(&cli, &settings).into(),
        Err(error) => usage(&error, &args).into(),
    }
}

fn is_dflock(args: &[OsString]) -> bool {
    args.first().and_then(|name| Path::new(name).file_name()).is_some_and(|name| name == "dflock")
}

fn usage(error: &clap::Error, args: &[OsString]) -> Exit {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return Exit::Fine,
        ErrorKind::UnknownArgument if args.get(1).is_some_and(|arg| arg == "run") && !args.contains(&"--".into()) => {
            eprintln!("The command comes after two dashes: bandog run NAME -- COMMAND [ARG]...");
        }
        _ => {}
    }
    Exit::Usage
}

fn perform(cli: &Cli, settings: &Settings) -> Exit {
    let plain = |result: Result<Exit, Failure>| result.unwrap_or_else(|failure| say_plainly(&failure));
    match &cli.command {
        Command::Run(args) => on_runtime(&args.store, async |say| run::run(args, settings, say).await),
        Command::Acquire(args) => on_runtime(&args.store, async |say| tickets::acquire(args, settings, say).await),
        Command::Renew(args) => on_runtime(&args.store, async |say| tickets::renew(args, settings, say).await),
        Command::Release(args) => on_runtime(&args.store, async |say| tickets::release(args, settings, say).await),
        Command::Completions { shell } => plain(pages::completions(*shell)),
        Command::Man { command } => plain(pages::man(command.as_deref())),
    }
}

fn say_plainly(failure: &Failure) -> Exit {
    eprintln!("bandog: {}", failure.text);
    failure.exit
}

fn on_runtime(args: &StoreArgs, work: impl AsyncFnOnce(&Say) -> Result<Exit, Failure>) -> Exit {
    let say = Say::new(args);
    let result = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work(&say)),
        Err(error) => Err(Failure::new(Exit::Unavailable, format!("no runtime: {error}"))),
    };
    result.unwrap_or_else(|failure| {
        say.failure(&failure);
        failure.exit
    })
}
