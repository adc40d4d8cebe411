//! The command as a library, for its own binary and tests: nothing here is a promise to other crates.

pub mod args;
mod ask;
mod bench;
mod caution;
pub mod child;
mod close;
mod connect;
mod dflock;
mod doctor;
mod entry;
pub mod exit;
mod explain;
mod failure;
mod file;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod grace;
mod held;
mod idle;
mod keep;
pub mod keeper;
mod ls;
mod mistake;
mod names;
mod near;
mod note;
mod pages;
mod peek;
mod query;
mod revoke;
mod run;
mod say;
mod scene;
mod screen;
mod settings;
mod shell;
mod show;
mod signals;
mod tickets;
mod top;
mod variables;
mod wait;
mod watch;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use args::{Cli, Command, StoreArgs, Talk};
use clap::error::ErrorKind;
use exit::Exit;
use failure::Failure;
use say::Say;
use settings::{Settings, Wrong};
use signal_hook::consts::SIGINT;

/// Does what the arguments say; the first is the name under which the command was called.
pub fn main(args: Vec<OsString>) -> ExitCode {
    if is_dflock(&args) {
        return end(dflock::main(&args));
    }
    match settings::parse(&args) {
        Ok((cli, settings)) => {
            if !wants_quiet(&args) {
                variables::warn_of_misspelt(wants_json(&args));
                // `doctor` says what it thinks of the server, and in which order.
                if !matches!(cli.command, Command::Doctor(_)) {
                    caution::tell(wants_json(&args));
                }
            }
            end(perform(&cli, &settings))
        }
        Err(Wrong::Usage(error)) => usage(&error, &args).into(),
        Err(Wrong::Elsewhere(text)) => say_plainly(&Failure::usage(text), wants_json(&args)).into(),
    }
}

/// Ends as the command did where that matters: a shell's script stops at Ctrl-C only if whoever it waits for died of it.
fn end(exit: Exit) -> ExitCode {
    if matches!(exit, Exit::Killed(SIGINT) | Exit::Interrupted(SIGINT)) && std::io::stdin().is_terminal() {
        let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
    }
    exit.into()
}

// When the arguments cannot be understood, or are not yet.
fn wants_json(args: &[OsString]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

fn wants_quiet(args: &[OsString]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "-q" || arg == "--quiet")
}

fn is_dflock(args: &[OsString]) -> bool {
    args.first().and_then(|name| Path::new(name).file_name()).is_some_and(|name| name == "dflock")
}

fn usage(error: &clap::Error, args: &[OsString]) -> Exit {
    let help = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Some(Exit::Fine),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Some(Exit::Usage),
        _ => None,
    };
    if let Some(exit) = help {
        let _ = error.print();
        return exit;
    }
    let json = wants_json(args);
    let failure = Failure::usage(mistake::text(error, args, json));
    failure.say(json, wants_quiet(args));
    failure.exit
}

fn perform(cli: &Cli, settings: &Settings) -> Exit {
    let plain = |result: Result<Exit, Failure>| result.unwrap_or_else(|failure| say_plainly(&failure, false));
    match &cli.command {
        Command::Run(args) => {
            let say = Say::new(args.talk, args.store.json);
            on_runtime(&say, Some(&args.lock.name), async |say| run::run(args, settings, say).await)
        }
        Command::Acquire(args) => {
            let say = Say::new(args.talk, args.store.json);
            on_runtime(&say, Some(&args.lock.name), async |say| tickets::acquire(args, settings, say).await)
        }
        Command::Renew(args) => {
            let say = Say::new(args.talk, args.store.json);
            on_runtime(&say, None, async |say| tickets::renew(args, settings, say).await)
        }
        Command::Release(args) => {
            let say = Say::new(args.talk, args.store.json);
            on_runtime(&say, None, async |say| tickets::release(args, settings, say).await)
        }
        Command::Wait(args) => {
            let say = Say::new(args.talk, args.store.json);
            on_runtime(&say, Some(&args.name), async |say| idle::wait(args, settings, say).await)
        }
        Command::Ls(args) => on_runtime(&plainly(&args.store), None, async |_| ls::ls(args, settings).await),
        Command::Show(args) => {
            on_runtime(&plainly(&args.store), Some(&args.name), async |_| show::show(args, settings).await)
        }
        Command::Doctor(args) => {
            on_runtime(&plainly(&args.store), None, async |_| doctor::doctor(args, settings).await)
        }
        Command::Bench(args) => on_runtime(&plainly(&args.store), None, async |_| bench::bench(args, settings).await),
        Command::Watch(args) => on_runtime(&plainly(&args.store), None, async |_| watch::watch(args, settings).await),
        Command::Top(args) => on_runtime(&plainly(&args.store), None, async |_| top::top(args, settings).await),
        Command::Completions { shell } => plain(pages::completions(*shell)),
        Command::Break(args) => {
            on_runtime(&plainly(&args.store), Some(&args.name), async |_| revoke::revoke(args, settings).await)
        }
        Command::Explain { kind, json } => {
            explain::explain(kind.as_deref(), *json).unwrap_or_else(|failure| say_plainly(&failure, *json))
        }
        Command::Man { command } => plain(pages::man(command.as_deref())),
    }
}

fn plainly(args: &StoreArgs) -> Say {
    Say::new(Talk::default(), args.json)
}

fn say_plainly(failure: &Failure, json: bool) -> Exit {
    failure.say(json, false);
    failure.exit
}

/// The runtime panics where it finds no descriptors for its signals, so they are looked for first.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let room = [(); 3].map(|()| std::os::unix::net::UnixStream::pair());
    for pair in room {
        drop(pair?);
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn on_runtime(say: &Say, lock: Option<&str>, work: impl AsyncFnOnce(&Say) -> Result<Exit, Failure>) -> Exit {
    let result = match runtime() {
        Ok(runtime) => {
            let result = runtime.block_on(work(say));
            // A host's name that is still being looked up, after the patience with it was over, holds nobody up.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Failure::new("system", Exit::Unavailable, format!("no runtime: {error}"))),
    };
    result.unwrap_or_else(|mut failure| {
        failure.lock = failure.lock.or_else(|| lock.map(str::to_owned));
        say.failure(&failure);
        failure.exit
    })
}
