//! The `bandog` command.

fn main() {}
