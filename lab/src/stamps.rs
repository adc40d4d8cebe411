//! When each hold was asked for, when it began, and when its release began: three little-endian numbers each, in a file. The highest bit
//! of the first says that others may hold it, too.

use std::io::{self, Write};
use std::path::Path;

/// One hold, as the process that held it saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub asked: u64,
    pub held: u64,
    pub left: u64,
    /// Whether it is shared with others that read.
    pub reads: bool,
}

const READS: u64 = 1 << 63;

/// So many are kept of a process, so that an empty section at full speed does not fill the disk.
pub const LIMIT: usize = 200_000;

pub fn write(path: &Path, stamps: &[Stamp]) -> io::Result<()> {
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    for stamp in stamps {
        let asked = stamp.asked | if stamp.reads { READS } else { 0 };
        [asked, stamp.held, stamp.left].iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
    }
    file.flush()
}

pub fn read(path: &Path) -> io::Result<Vec<Stamp>> {
    let bytes = std::fs::read(path)?;
    let number = |part: &[u8]| u64::from_le_bytes(part.try_into().unwrap_or_default());
    let stamp = |part: &[u8]| {
        let asked = number(&part[..8]);
        let (held, left) = (number(&part[8..16]), number(&part[16..]));
        Stamp { asked: asked & !READS, held, left, reads: asked & READS != 0 }
    };
    Ok(bytes.chunks_exact(24).map(stamp).collect())
}
