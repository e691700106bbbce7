//! The disk filler: one large file, or endless small ones.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Exhausted, StoppedBy};
use crate::sys::Errno;

const CHUNK: usize = 1 << 20;

/// Writes one file until the kernel refuses, then removes it.
pub(super) fn fill(directory: &Path, give_up_at: u64) -> io::Result<Exhausted> {
    let file = directory.join(format!("sandyard-probe-fill-{}", std::process::id()));
    let bytes_written = AtomicU64::new(0);
    let errno = write_until_refused(&file, &bytes_written, give_up_at);
    let _ = fs::remove_file(&file);
    Ok(exhausted(bytes_written.into_inner(), errno))
}

/// Makes empty files until the kernel refuses, then removes them.
pub(super) fn fill_with_files(directory: &Path, give_up_at: u64) -> io::Result<Exhausted> {
    let directory = directory.join(format!("sandyard-probe-files-{}", std::process::id()));
    fs::create_dir(&directory)?;
    let mut made = 0;
    let errno = loop {
        if made >= give_up_at {
            break 0;
        }
        match File::create(directory.join(made.to_string())) {
            Ok(_) => made += 1,
            Err(error) => break Errno::from(error).0,
        }
    };
    let _ = fs::remove_dir_all(&directory);
    Ok(exhausted(made, errno))
}

fn exhausted(reached: u64, errno: i32) -> Exhausted {
    let (stopped_by, detail) = match errno {
        0 => (StoppedBy::GaveUp, "nothing refused".to_owned()),
        errno => (StoppedBy::Refused, format!("refused with {}", Errno(errno))),
    };
    Exhausted {
        reached,
        stopped_by,
        detail,
    }
}

/// Appends to `file` and counts, until refused (the error number) or `give_up_at` in all (0).
pub(super) fn write_until_refused(file: &Path, bytes_written: &AtomicU64, give_up_at: u64) -> i32 {
    // Not zeroes: those may take no room at all.
    let chunk: Vec<u8> = (0..CHUNK).map(|index| (index % 251) as u8 | 1).collect();
    let mut file = match File::create(file) {
        Ok(file) => file,
        Err(error) => return Errno::from(error).0,
    };
    while bytes_written.load(Ordering::Relaxed) < give_up_at {
        match file.write(&chunk) {
            Ok(count) => bytes_written.fetch_add(count as u64, Ordering::Relaxed),
            Err(error) => return Errno::from(error).0,
        };
    }
    // Some file systems refuse only when it is to reach the disk.
    file.sync_all()
        .map_or_else(|error| Errno::from(error).0, |()| 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filler_that_nothing_stops_gives_up_and_leaves_nothing() {
        let directory =
            std::env::temp_dir().join(format!("sandyard-probe-test-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let bytes = fill(&directory, 3 << 20).unwrap();
        let files = fill_with_files(&directory, 10).unwrap();
        assert_eq!(
            (bytes.reached, bytes.stopped_by),
            (3 << 20, StoppedBy::GaveUp)
        );
        assert_eq!((files.reached, files.stopped_by), (10, StoppedBy::GaveUp));
        fs::remove_dir(&directory).expect("nothing is left in it");
    }
}
