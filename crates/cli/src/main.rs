//! The `bandog` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: the command starts itself again for its supervisor and for keepers of tickets, and those must be quick.
    let args = || std::env::args_os().skip(1);
    if let Some(code) = bandog_cli::child::role(args()).or_else(|| bandog_cli::keeper::role(args())) {
        return code;
    }
    bandog_cli::main(std::env::args_os().collect())
}
