//! What counts depend on besides our code: compiler, target, flags, C library, valgrind.

use std::collections::BTreeMap;
use std::process::Command;

/// By name, with what each is here or was when the baseline was recorded.
pub(crate) type Setting = BTreeMap<String, String>;

/// What built this program, and what will count it.
///
/// # Errors
/// Valgrind cannot be started.
pub(crate) fn here() -> Result<Setting, String> {
    let valgrind =
        told("valgrind", &["--version"]).ok_or("valgrind is not here: install it (apt-get install valgrind)")?;
    // Allocating and copying memory is the C library's work, and in every path.
    let libc = told("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_else(|| "another libc".into());
    let parts = [
        ("rustc", env!("BUILT_BY").to_owned()),
        ("target", env!("BUILT_FOR").to_owned()),
        ("flags", env!("BUILT_WITH").to_owned()),
        ("libc", libc),
        ("valgrind", valgrind),
    ];
    Ok(parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// What is not the same, in one line; `None` when everything is.
pub(crate) fn difference(recorded: &Setting, here: &Setting) -> Option<String> {
    let nothing = String::new();
    let names: std::collections::BTreeSet<&String> = recorded.keys().chain(here.keys()).collect();
    let differs = |name: &&String| {
        let (was, is) = (recorded.get(*name).unwrap_or(&nothing), here.get(*name).unwrap_or(&nothing));
        (was != is).then(|| format!("{name} was \"{was}\" and is \"{is}\""))
    };
    let told: Vec<String> = names.iter().filter_map(differs).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn told(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(parts: &[(&str, &str)]) -> Setting {
        parts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_same_setting_is_not_worth_a_word() {
        let here = setting(&[("rustc", "rustc 1.95.0"), ("flags", "")]);
        assert_eq!(difference(&here, &here), None);
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let recorded = setting(&[("rustc", "rustc 1.95.0"), ("libc", "glibc 2.36")]);
        let here = setting(&[("rustc", "rustc 1.97.0"), ("libc", "glibc 2.36"), ("valgrind", "valgrind-3.19.0")]);
        let told = difference(&recorded, &here).unwrap();
        let rustc = "rustc was \"rustc 1.95.0\" and is \"rustc 1.97.0\"";
        assert_eq!(told, format!("{rustc}, valgrind was \"\" and is \"valgrind-3.19.0\""));
    }
}
