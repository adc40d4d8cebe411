//! The `bandog` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: the command starts itself again for its supervisor, and those must be quick.
    if let Some(code) = bandog_cli::child::role(std::env::args_os().skip(1)) {
        return code;
    }
    bandog_cli::main(std::env::args_os().collect())
}
