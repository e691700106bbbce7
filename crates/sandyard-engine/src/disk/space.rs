//! Free space of the host's disk, and how much of it is kept free.

use std::path::Path;

use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::DataDir;
use crate::sys::OperationExt;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The file system that holds the data directory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) total: u64,
    pub(crate) free: u64,
}

impl Space {
    /// Reads it from the kernel.
    pub(crate) fn of(data: &DataDir) -> Result<Self> {
        Self::at(data.root())
    }

    /// The same for the file system that holds `path`.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let stat = rustix::fs::statvfs(path).operation("ask for free space of", path.display())?;
        Ok(Self {
            total: stat.f_blocks * stat.f_frsize,
            free: stat.f_bavail * stat.f_frsize,
        })
    }

    /// Free space that no sandbox may use: for the database, logs and what the kernel has yet to write.
    pub(crate) fn margin(self) -> u64 {
        (self.total / 16).clamp(64 * MIB, 512 * MIB)
    }

    /// The last free space above the margin, which sandboxes share evenly: one that took the rest leaves some to the others.
    pub(crate) fn shared(self) -> u64 {
        self.margin()
    }

    /// Free space without which no sandbox, volume or snapshot is made.
    pub(crate) fn admission(self) -> u64 {
        self.margin() + self.shared() / 2
    }

    /// Size of the reserve file, which is released when other programs fill the disk.
    pub(crate) fn reserve_file(self) -> u64 {
        (self.total / 32).clamp(32 * MIB, 256 * MIB)
    }

    /// Says whether sandboxes together could fill the disk before the next check. `dirty_limit` is what the kernel
    /// may hold in memory for all files.
    pub(crate) fn is_scarce(self, dirty_limit: u64) -> bool {
        self.free < self.margin() + self.shared() + GIB + dirty_limit.min(16 * GIB)
    }

    /// Says whether other programs are filling the disk: sandboxes alone cannot get this far.
    pub(crate) fn is_critical(self) -> bool {
        self.free < self.margin() / 2
    }

    /// Fails with `NoCapacity` unless `needed` bytes are free.
    pub(crate) fn check(self, data: &DataDir, needed: u64) -> Result<()> {
        if self.free >= needed {
            return Ok(());
        }
        // The hint is for users. The message names a path of the host and is for the operator.
        let numbers = format!(
            "{} MiB of the host's disk are free, and {} MiB are needed",
            self.free / MIB,
            needed.div_ceil(MIB)
        );
        let message = format!("{numbers} in `{}`", data.root().display());
        Err(EngineError::new(ErrorKind::NoCapacity, message)
            .hint("delete sandboxes or templates, or free disk space"))
    }
}

/// Fails while the host's disk is nearly full.
pub(crate) fn check_free_space(data: &DataDir) -> Result<()> {
    check_free_space_for(data, 0)
}

/// Fails while the host's disk is nearly full, or would be with `bytes` more.
pub(crate) fn check_free_space_for(data: &DataDir, bytes: u64) -> Result<()> {
    let space = Space::of(data)?;
    space.check(data, space.admission().saturating_add(bytes))
}

/// Fails if there is not enough space to start a stopped sandbox. A new one needs more.
pub(crate) fn check_space_to_start(data: &DataDir) -> Result<()> {
    let space = Space::of(data)?;
    space.check(data, space.margin())
}

/// Says whether the disk has too little space to make anything.
pub(crate) fn is_nearly_full(data: &DataDir) -> Result<bool> {
    let space = Space::of(data)?;
    Ok(space.free < space.admission())
}

/// What the kernel may hold in memory for all files before it makes writers wait, in bytes.
pub(crate) fn dirty_limit() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let pages = text.lines().find_map(|line| {
        line.strip_prefix("nr_dirty_threshold ")?
            .parse::<u64>()
            .ok()
    });
    pages.map_or(GIB, |pages| {
        pages.saturating_mul(rustix::param::page_size() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(total_mib: u64, free_mib: u64) -> Space {
        Space {
            total: total_mib * MIB,
            free: free_mib * MIB,
        }
    }

    #[test]
    fn thresholds_follow_the_size_of_the_disk_within_bounds() {
        let small = space(3072, 0);
        assert_eq!(
            (small.margin(), small.admission(), small.reserve_file()),
            (192 * MIB, 288 * MIB, 96 * MIB)
        );
        let large = space(1 << 20, 0);
        assert_eq!(
            (large.margin(), large.admission(), large.reserve_file()),
            (512 * MIB, 768 * MIB, 256 * MIB)
        );
        for total in [16, 512, 3072, 1 << 14, 1 << 24] {
            let space = space(total, 0);
            assert!(space.margin() / 2 < space.margin());
            assert!(space.admission() < space.margin() + space.shared());
        }
    }

    #[test]
    fn a_refusal_names_what_is_free_and_what_is_needed() {
        let data = DataDir::new("/data");
        space(3072, 288)
            .check(&data, 288 * MIB)
            .expect("just enough");
        let error = space(3072, 287)
            .check(&data, 288 * MIB)
            .expect_err("too little");
        assert_eq!(error.kind, ErrorKind::NoCapacity);
        let numbers = "287 MiB of the host's disk are free, and 288 MiB are needed";
        assert_eq!(error.message, format!("{numbers} in `/data`"));
    }
}
