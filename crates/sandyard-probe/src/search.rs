//! Searches for the planted files, and reads files and processes without blocking.

use std::fs;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};

use crate::check::Outcome;
use crate::context::Context;
use crate::sys;

/// How much of a file is read, in bytes: markers are at the start, and some files never end.
const MOST_READ: u64 = 64 * 1024;

/// Reads the start of a file without ever blocking.
pub(crate) fn read_start(path: impl AsRef<Path>) -> sys::Result<Vec<u8>> {
    let fd = sys::open(path, libc::O_RDONLY)?;
    read_fd(fd)
}

/// Reads the start of an open file and closes it.
pub(crate) fn read_fd(fd: i32) -> sys::Result<Vec<u8>> {
    // SAFETY: the caller has just opened it and hands it over.
    let file = unsafe { fs::File::from_raw_fd(fd) };
    let mut bytes = Vec::new();
    file.take(MOST_READ).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether `marker` is in `bytes`.
pub(crate) fn contains(bytes: &[u8], marker: &str) -> bool {
    !marker.is_empty()
        && bytes
            .windows(marker.len())
            .any(|window| window == marker.as_bytes())
}

/// Searches for every planted file below each of `roots`, as if that were the host's root directory.
pub(crate) fn search(context: &Context, roots: impl IntoIterator<Item = PathBuf>) -> Outcome {
    let secrets = &context.plan.secrets;
    if secrets.is_empty() {
        return Outcome::inconclusive("no file was planted");
    }
    let mut tried = 0_u32;
    let mut last = None;
    for root in roots {
        for secret in secrets {
            let path = root.join(secret.path.strip_prefix("/").unwrap_or(&secret.path));
            tried += 1;
            match read_start(&path) {
                Ok(bytes) if contains(&bytes, &secret.marker) => {
                    return Outcome::breached(format_args!(
                        "read the host's file as `{}`",
                        path.display()
                    ));
                }
                Ok(_) => {}
                Err(errno) => last = Some(errno),
            }
        }
    }
    match last {
        Some(errno) => Outcome::held(format_args!("{tried} paths tried, the last gave {errno}")),
        None => Outcome::held(format_args!("{tried} paths tried")),
    }
}

/// The process ids in /proc.
pub(crate) fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Field 22 of a process's stat file: when it started, in clock ticks since boot.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold spaces and brackets itself; the fields count from the last one.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()
}
