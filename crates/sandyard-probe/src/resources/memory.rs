//! The memory hog, in anonymous memory and in memory file systems.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Exhausted, StoppedBy, disk};
use crate::child::wait;
use crate::sys::Errno;
use sandyard_confine::mountinfo::mounts;

const CHUNK: usize = 4 << 20;

/// A number that parent and child share, and that outlives the child's death.
#[derive(Debug)]
pub(super) struct Shared(*mut libc::c_void);

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self(page))
        }
    }

    pub(super) fn get(&self) -> &AtomicU64 {
        // SAFETY: page-aligned, zeroed and mapped as long as `self` lives; any bit pattern is a valid number.
        unsafe { &*self.0.cast() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size.
        unsafe { libc::munmap(self.0, 4096) };
    }
}

/// Touches memory in a child until it is refused or killed.
pub(super) fn hog(give_up_at: u64) -> io::Result<Exhausted> {
    let touched = Shared::new()?;
    in_child(&touched, give_up_at, || {
        while touched.get().load(Ordering::Relaxed) < give_up_at {
            match touch_chunk() {
                Ok(()) => touched.get().fetch_add(CHUNK as u64, Ordering::Relaxed),
                Err(errno) => return errno.0,
            };
        }
        0
    })
}

/// Maps a chunk and writes to each page of it; it is never given back.
fn touch_chunk() -> Result<(), Errno> {
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let chunk = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            CHUNK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if chunk == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    // SAFETY: inside the mapping just made. Not zero, so that pages are not shared.
    unsafe { std::ptr::write_bytes(chunk.cast::<u8>(), 0x5a, CHUNK) };
    Ok(())
}

/// Fills every writable tmpfs in a child, and removes the files again.
pub(super) fn fill_files(give_up_at: u64) -> io::Result<Exhausted> {
    let files: Vec<PathBuf> = mounts()
        .into_iter()
        .filter(|mount| mount.kind == "tmpfs" && !mount.is_read_only())
        .map(|mount| {
            mount
                .point
                .join(format!("sandyard-probe-fill-{}", std::process::id()))
        })
        .collect();
    let written = Shared::new()?;
    let exhausted = in_child(&written, give_up_at, || {
        let mut last = libc::ENOENT;
        for file in &files {
            last = disk::write_until_refused(file, written.get(), give_up_at);
            if last == 0 {
                break;
            }
        }
        last
    });
    for file in files {
        let _ = std::fs::remove_file(file);
    }
    exhausted
}

/// Runs `work`, which returns the error number that stopped it or 0, as the first victim of the out-of-memory killer.
fn in_child(
    counter: &Shared,
    give_up_at: u64,
    work: impl FnOnce() -> i32,
) -> io::Result<Exhausted> {
    // SAFETY: single-threaded.
    let child = unsafe { libc::fork() };
    if child == -1 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        // SAFETY: plain numbers; ends the child only. Error numbers are below 256.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::_exit(work())
        }
    }
    let status = wait(child);
    let reached = counter.get().load(Ordering::Relaxed);
    let (stopped_by, detail) = match () {
        () if libc::WIFSIGNALED(status) => (
            StoppedBy::Killed,
            format!("killed by signal {}", libc::WTERMSIG(status)),
        ),
        () if libc::WEXITSTATUS(status) == 0 => (
            StoppedBy::GaveUp,
            format!("nothing stopped it before {give_up_at}"),
        ),
        () => (
            StoppedBy::Refused,
            format!("refused with {}", Errno(libc::WEXITSTATUS(status))),
        ),
    };
    Ok(Exhausted {
        reached,
        stopped_by,
        detail,
    })
}
