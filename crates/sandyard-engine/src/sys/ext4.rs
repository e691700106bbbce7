//! Settings of ext4 file systems on loop devices, in sysfs.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::loopdev::LoopDevice;

/// Block size in bytes of every disk that the engine formats. A cluster is one block.
pub(crate) const BLOCK: u64 = 4096;

/// An ext4 that is mounted from loop device N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopExt4(pub(crate) u32);

impl LoopExt4 {
    /// All that are mounted on this host, by any process.
    pub(crate) fn mounted() -> impl Iterator<Item = Self> {
        let entries = std::fs::read_dir("/sys/fs/ext4").into_iter().flatten();
        entries.flatten().filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("loop")?.parse();
            number.ok().map(Self)
        })
    }

    /// The ext4 on `device`.
    pub(crate) fn on(device: &LoopDevice) -> Self {
        Self(device.number)
    }

    pub(crate) fn is_mounted(self) -> bool {
        self.setting("").exists()
    }

    /// The file below the loop device.
    pub(crate) fn image(self) -> Option<PathBuf> {
        let path = format!("/sys/block/loop{}/loop/backing_file", self.0);
        let text = std::fs::read_to_string(path).ok()?;
        Some(PathBuf::from(text.trim_end()))
    }

    /// Bytes that programs have written and that have no blocks yet.
    pub(crate) fn pending_bytes(self) -> u64 {
        self.number("delayed_allocation_blocks") * BLOCK
    }

    /// How often the kernel found the file system damaged.
    pub(crate) fn errors(self) -> u64 {
        self.number("errors_count")
    }

    /// Free blocks that no program may use.
    pub(crate) fn reserved(self) -> u64 {
        self.number("reserved_clusters")
    }

    /// Reserves `blocks` free blocks, from root too: a write that needs one of them fails with ENOSPC.
    pub(crate) fn set_reserved(self, blocks: u64) -> io::Result<()> {
        std::fs::write(self.setting("reserved_clusters"), blocks.to_string())
    }

    /// Bounds the dirty pages of the file system; `None` lifts the bound.
    pub(crate) fn set_dirty_limit(self, bytes: Option<u64>) -> io::Result<()> {
        let folder = self.writeback();
        match bytes {
            Some(bytes) => {
                std::fs::write(folder.join("max_bytes"), bytes.to_string())?;
                std::fs::write(folder.join("strict_limit"), "1")
            }
            None => {
                std::fs::write(folder.join("strict_limit"), "0")?;
                std::fs::write(folder.join("max_ratio"), "100")
            }
        }
    }

    /// Lifts a bound that an earlier user of the device has left. Costs one read if there is none.
    pub(crate) fn lift_old_dirty_limit(self) {
        let strict = std::fs::read_to_string(self.writeback().join("strict_limit"));
        if strict.is_ok_and(|text| text.trim() == "1") {
            let _ = self.set_dirty_limit(None);
        }
    }

    /// The device's writeback settings. They outlive the file system and its image.
    fn writeback(self) -> PathBuf {
        PathBuf::from(format!("/sys/class/bdi/7:{}", self.0))
    }

    fn number(self, name: &str) -> u64 {
        let text = std::fs::read_to_string(self.setting(name));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    }

    fn setting(self, name: &str) -> PathBuf {
        Path::new("/sys/fs/ext4")
            .join(format!("loop{}", self.0))
            .join(name)
    }
}

/// Where in an image the journal is, as offsets and lengths in bytes. Nothing for a journal that is cut into many pieces.
pub(crate) fn journal_ranges(image: &std::fs::File) -> io::Result<Vec<(u64, u64)>> {
    // A copy of the journal's inode in the superblock: the root of its tree of extents.
    const COPY: u64 = 1024 + 0x10C;
    const MAGIC: u16 = 0xF30A;
    let mut root = [0; 60];
    image.read_exact_at(&mut root, COPY)?;
    let half = |at: usize| u16::from_le_bytes([root[at], root[at + 1]]);
    let is_leaf = half(0) == MAGIC && half(6) == 0;
    let count = if is_leaf { half(2).min(4) } else { 0 };
    let range = |number: u16| {
        let at = 12 + usize::from(number) * 12;
        let low = u64::from(half(at + 8)) | u64::from(half(at + 10)) << 16;
        let start = low | u64::from(half(at + 6)) << 32;
        (start * BLOCK, u64::from(half(at + 4)) * BLOCK)
    };
    Ok((0..count).map(range).collect())
}
