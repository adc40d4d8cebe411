//! Paths in the commands that remarks advise: who copies one into a shell must mean the path and nothing else.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path as a shell reads it. As it is wherever that will do.
pub(super) fn quoted(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte);
    match path.to_str() {
        // All paths here are absolute: none can be taken for an option.
        Some(text) if !text.is_empty() && text.bytes().all(|byte| plain(&byte)) => text.to_owned(),
        Some(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => escaped(path.as_os_str().as_bytes()),
    }
}

/// Bytes that cannot be shown, in the form of shells that know `$'…'`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Octal has a fixed length: a digit after it is not taken for a part of it.
            _ => drop(write!(text, "\\{byte:03o}")),
        }
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_path_that_was_meant() {
        for path in
            [&b"/var/lib/locks.db"[..], b"/a b/$(id)`x`", b"/it's \"so\" \\ !", b"/two\nlines1", b"/\xff7", b"/x;*"]
        {
            let shown = quoted(Path::new(OsStr::from_bytes(path)));
            let output = Command::new("bash").args(["-c", &format!("printf %s {shown}")]).output().unwrap();
            assert_eq!(output.stdout, path, "{shown}");
        }
        assert_eq!(quoted(Path::new("/var/lib/locks.db-wal")), "/var/lib/locks.db-wal");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
