//! The example that tells the life of a lock ends well.

use std::process::Command;

#[test]
fn the_story_is_played_to_its_end() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/story.sh");
    let mut played = Command::new("sh");
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("BANDOG")) {
        played.env_remove(key);
    }
    let played = played.arg(script).env("BANDOG", env!("CARGO_BIN_EXE_bandog")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
    assert!(played.status.success(), "{out}\n{err}");
    assert!(out.ends_with("== the end\n"), "{out}\n{err}");
}
