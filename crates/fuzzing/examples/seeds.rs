//! Writes the seeds where cargo-fuzz looks for them: `cargo run -p bandog-fuzzing --example seeds`, then `cargo +nightly fuzz run TARGET`.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, _) in bandog_fuzzing::TARGETS {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in bandog_fuzzing::seeds(target).into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:04}")), seed)?;
        }
    }
    Ok(())
}
