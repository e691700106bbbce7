//! Reading a small text file, and no other.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of the file, far more than any settings need. A device or a mistaken path must not fill the memory.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a regular file of bounded size.
pub(super) fn small_text(path: &Path) -> io::Result<(String, std::fs::Metadata)> {
    // Checked before the file is opened: opening a pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 1 MiB",
        )),
        false => Ok((text, metadata)),
    }
}
