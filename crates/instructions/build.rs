//! Tells the program what built it: instructions depend on the compiler, its flags and the target.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let told = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&told);
    // "rustc 1.95.0 (59807616e 2026-04-14)": the rest is the same for all who have that version.
    println!("cargo::rustc-env=BUILT_BY={}", version.split(" (").next().unwrap_or_default().trim());
    println!("cargo::rustc-env=BUILT_FOR={}", env::var("TARGET").unwrap_or_default());
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    println!("cargo::rustc-env=BUILT_WITH={}", flags.replace('\x1f', " "));
}
