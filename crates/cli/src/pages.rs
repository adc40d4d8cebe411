//! The manual page and the completions, made from the same description as the help.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{self, Exit};
use crate::failure::Failure;

pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bandog", &mut text);
    print(&text)
}

pub(crate) fn man(of: Option<&str>) -> Result<Exit, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    if let Some(name) = of {
        let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let unknown = || format!("there is no subcommand {name:?}; there are {}", known.join(", "));
        let found = command.find_subcommand(name).ok_or_else(|| Failure::usage(unknown()))?;
        command = found.clone().name(format!("bandog-{name}"));
    }
    let mut text = Vec::new();
    // The codes are a section of their own instead of the end of the help.
    let page = clap_mangen::Man::new(command.after_help(None::<&str>).after_long_help(None::<&str>));
    let rendered = page.render(&mut text).and_then(|()| exit_status(&mut text, of));
    rendered.map_err(|error| Failure::new("output", Exit::Unavailable, error.to_string()))?;
    print(&text)
}

fn exit_status(page: &mut Vec<u8>, of: Option<&str>) -> std::io::Result<()> {
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    exit::rows(of).try_for_each(|row| writeln!(page, ".TP\n{}\n{}", row.code, row.meaning))
}

fn print(text: &[u8]) -> Result<Exit, Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text).and_then(|()| out.flush());
    written
        .map(|()| Exit::Fine)
        .map_err(|error| Failure::new("output", Exit::Unavailable, format!("not printed: {error}")))
}
