//! System calls on files, none of which may block.
//!
//! Everything is opened with `O_NONBLOCK`, so that a FIFO placed where a file is expected cannot stop the event loop.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// How much is moved in one go before others get their turn.
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// Opens something that exists.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let always = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags | always, Mode::empty())?)
}

/// Reads a whole small file, at most `max` bytes of it.
pub(crate) fn read_small(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let file = open(path, OFlags::RDONLY)?;
    let mut content = Vec::new();
    while content.len() < max {
        let mut chunk = [0u8; 4096];
        let want = chunk.len().min(max - content.len());
        match rustix::io::read(&file, &mut chunk[..want]) {
            Ok(0) => break,
            Ok(count) => content.extend_from_slice(&chunk[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(content)
}

/// Writes all bytes to a file.
pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
