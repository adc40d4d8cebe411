//! Runs this program once more, under callgrind, for one hot path, and reads how many instructions the region took.
//!
//! A process for each path: none of them sees what another did to the allocator.

use std::env;
use std::process::{Command, Output};

use crate::paths::HotPath;

/// The first argument of a process that is to play a path and nothing else.
pub(crate) const PLAY: &str = "--play";

/// As callgrind knows it; the name of the function in [`crate::region`].
const REGION: &str = "bandog_instructions::region::counted*";

/// The C library copies memory in a way that depends on the processor, which makes up to 7 % of a path. So it is told to do it in
/// the way that every x86-64 can. Elsewhere, and by other libraries, this is not understood and does no harm.
const PLAIN: &str = "glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-ERMS,-SSSE3,-SSE4_1,-SSE4_2";

/// Instructions that a hot path took inside the region.
///
/// # Errors
/// It failed under valgrind, or nothing was counted.
pub(crate) fn count(path: &HotPath) -> Result<u64, String> {
    let program = env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={REGION}"))
        .arg(program)
        .args([PLAY, path.name])
        // What a shell happens to export moves the stack, and settings of bandog's would be obeyed.
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("GLIBC_TUNABLES", PLAIN)
        .output()
        .map_err(|error| format!("valgrind cannot be started: {error}"))?;
    let Output { status, stderr, .. } = &output;
    let told = String::from_utf8_lossy(stderr);
    match collected(&told) {
        Some(count) if status.success() && count > 0 => Ok(count),
        _ => Err(format!("\"{}\" was not counted ({status}):\n{told}", path.name)),
    }
}

/// The line `==4711== Collected : 123456` of what callgrind says at the end.
fn collected(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found_in_what_callgrind_says() {
        let told = "==7== Callgrind, a call-graph generating cache profiler\n==7== \n==7== Events    : Ir\n==7== Collected : 123456\n";
        assert_eq!(collected(told), Some(123_456));
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected :\n"), None);
        assert_eq!(collected("valgrind: no such file"), None);
    }
}
