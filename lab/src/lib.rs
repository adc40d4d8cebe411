//! What the coordinator and the Rust contenders share: the clock, histograms, the stamps of holds, and versions.

pub mod clock;
pub mod histogram;
pub mod stamps;

/// A library and its version, as they were built in.
pub fn locked(library: &str) -> String {
    let head = format!("name = \"{library}\"\nversion = \"");
    let version = include_str!("../Cargo.lock").split_once(&head).and_then(|(_, rest)| rest.split('"').next());
    format!("{library} {}", version.unwrap_or("of unknown version"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_those_of_the_lock_file() {
        let version = super::locked("rslock");
        assert!(version.starts_with("rslock 0.10."), "{version}");
        assert_eq!(super::locked("no-such-library"), "no-such-library of unknown version");
    }
}
