//! Writes the bytes that the tests of a new format compare with: `cargo run -p bandog-record --example keep`. Only when a format gets a
//! new number, into a directory of its own.

use std::error::Error;
use std::path::Path;

use bandog_core::format::Format;
use bandog_record::{encode, encode_news};

#[allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#[path = "../tests/formats/histories.rs"]
mod histories;

fn main() -> Result<(), Box<dyn Error>> {
    let format = Format::NEWEST;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/format-{format}"));
    std::fs::create_dir(&directory)?;
    for (what, record) in histories::records() {
        let bytes = encode(histories::NAME, &record, format)?;
        std::fs::write(directory.join(format!("{what}.record")), bytes)?;
    }
    for (what, news) in histories::news() {
        std::fs::write(directory.join(format!("{what}.news")), encode_news(&news, format)?)?;
    }
    Ok(())
}
