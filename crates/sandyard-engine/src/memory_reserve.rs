//! Memory that is kept free for the host.
//!
//! The limits of all sandboxes together may exceed the host's memory, since most sandboxes use little. So a create or start checks
//! the memory that is available at that time.

use sandyard_confine::host::{HostResources, MemoryGauge};
use sandyard_core::size::Size;

use crate::error::{EngineError, ErrorKind, Result};

/// Refuses new sandboxes while the host is short of memory.
#[derive(Debug)]
pub(crate) struct MemoryReserve {
    gauge: MemoryGauge,
    bytes: u64,
    /// The operator's setting in bytes.
    pub(crate) setting: Option<u64>,
}

impl MemoryReserve {
    /// Keeps `setting` bytes free; `None`: a share of the host's memory.
    pub(crate) fn new(host: &HostResources, setting: Option<u64>) -> Self {
        Self {
            gauge: MemoryGauge::open(),
            bytes: setting.unwrap_or_else(|| host.memory_reserve()),
            setting,
        }
    }

    /// Fails with `NoCapacity` if less memory is available than must be kept free.
    pub(crate) fn check(&self) -> Result<()> {
        match self.gauge.available() {
            Some(available) if available < self.bytes => Err(EngineError::new(
                ErrorKind::NoCapacity,
                format!(
                    "this host has {} of memory available and must keep {} free",
                    Size(available).readable(),
                    Size(self.bytes).readable()
                ),
            )
            .hint("stop or delete sandboxes, or lower the setting `limits.memory_reserve`")),
            _ => Ok(()),
        }
    }
}
