//! The sizes of disks that are folders, where no kernel counts them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sandyard_core::SandboxId;

use super::LEAST_GROWTH;
use crate::context::Context;
use crate::disk::{self, DiskRecord};
use crate::verbs::list;

/// How often folders are measured: that means to look at every file.
const MEASURE_INTERVAL: Duration = Duration::from_secs(2);

/// Sizes at the last measurement, in bytes.
#[derive(Debug, Default)]
pub(super) struct FolderSizes {
    sizes: BTreeMap<SandboxId, u64>,
    measured: Option<Instant>,
}

impl FolderSizes {
    /// Measures, unless that was done a moment ago. Returns the sandbox that grew the most since the last measurement.
    pub(super) fn fastest_writer(&mut self, ctx: &Context) -> Option<SandboxId> {
        if self
            .measured
            .is_some_and(|at| at.elapsed() < MEASURE_INTERVAL)
        {
            return None;
        }
        let ids = list::ids(ctx).unwrap_or_default().into_iter();
        let sizes = ids
            .map(|id| {
                let bytes = disk::used_bytes(&ctx.data.sandbox(&id), &DiskRecord::Folder);
                (id, bytes)
            })
            .collect();
        self.measured = Some(Instant::now());
        let before = std::mem::replace(&mut self.sizes, sizes);
        let growth = |(id, bytes): (&SandboxId, &u64)| {
            let growth = bytes.saturating_sub(*before.get(id)?);
            (growth >= LEAST_GROWTH).then(|| (growth, id.clone()))
        };
        let fastest = self.sizes.iter().filter_map(growth).max();
        fastest.map(|(_, id)| id)
    }
}
