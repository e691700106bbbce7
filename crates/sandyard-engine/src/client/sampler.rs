//! Reads resource usage without the launcher: a request costs the launcher a process, and usage of every sandbox is read every
//! few seconds.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use sandyard_confine::cgroup::{self, Cgroup, Hierarchy};
use sandyard_core::SandboxId;

use super::Engine;
use crate::context;
use crate::disk::{self, DiskRecord};
use crate::layout::DataDir;

/// How old the measured size of a folder may be. To measure it means to look at every file.
const FOLDER_AGE: Duration = Duration::from_secs(60);

/// What a sandbox uses at one moment. Zero: this host does not count it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    counters: cgroup::Sample,
    disk_bytes: u64,
    /// When the disk was measured, if it is a folder.
    measured: Option<Instant>,
}

impl Sample {
    /// Processor time used so far, in microseconds.
    pub fn cpu_usage_us(&self) -> u64 {
        self.counters.cpu_usage_us
    }

    /// Memory in bytes, without page cache.
    pub fn memory_bytes(&self) -> u64 {
        let all = self.counters.memory_bytes;
        all.saturating_sub(self.counters.cache_bytes)
    }

    /// Page cache in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.counters.cache_bytes
    }

    /// Bytes written on top of the template.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }
}

/// Reads what sandboxes use. A call blocks for some microseconds. Where disks are folders, it sometimes takes as long as looking at
/// all files of the sandbox.
#[derive(Debug)]
pub struct Sampler {
    data: DataDir,
    groups: Hierarchy,
}

impl Engine {
    /// Makes a sampler of this engine's sandboxes. Blocks while it detects the host's cgroups.
    pub fn sampler(&self) -> Sampler {
        let data = self.shared.data.clone();
        Sampler {
            groups: context::cgroups(&data),
            data,
        }
    }
}

impl Sampler {
    /// Reads what a sandbox uses; `before` is its previous sample. `None`: the sandbox has no processes, or does not exist.
    pub fn sample(&self, id: &SandboxId, before: Option<&Sample>) -> Option<Sample> {
        let dir = self.data.sandbox(id);
        let group = self.groups.by_name(id.as_str());
        let counters = |group: Cgroup| group.sample(before.map(|before| &before.counters)).ok();
        let counters = group.ok().and_then(counters)?;
        let mut sample = Sample {
            counters,
            ..Sample::default()
        };
        if let Ok(image) = std::fs::metadata(dir.image()) {
            sample.disk_bytes = image.blocks() * 512;
            return Some(sample);
        }
        let cached = before.and_then(|before| Some((before.measured?, before.disk_bytes)));
        let (measured, bytes) = match cached {
            Some(cached) if cached.0.elapsed() < FOLDER_AGE => cached,
            _ => {
                let bytes = disk::used_bytes(&dir, &DiskRecord::Folder);
                (Instant::now(), bytes)
            }
        };
        sample.measured = Some(measured);
        sample.disk_bytes = bytes;
        // Without cgroups, only the socket shows that the sandbox runs.
        dir.agent_socket().exists().then_some(sample)
    }
}
