//! Memory that is kept free for the host.
//!
//! The limits of all sandboxes together may be more than the host has, since most of them use little. So what counts when one is
//! made or started is the memory that is really available then.

use sandyard_confine::host::{HostResources, MemoryGauge};
use sandyard_core::size::Size;

use crate::error::{EngineError, ErrorKind, Result};

/// Refuses new sandboxes while the host is short of memory.
#[derive(Debug)]
pub(crate) struct MemoryReserve {
    gauge: MemoryGauge,
    bytes: u64,
    /// As the operator said it.
    pub(crate) setting: Option<u64>,
}

impl MemoryReserve {
    /// Keeps `setting` bytes free, or a share of the host's memory if there is none.
    pub(crate) fn new(host: &HostResources, setting: Option<u64>) -> Self {
        Self {
            gauge: MemoryGauge::open(),
            bytes: setting.unwrap_or_else(|| host.memory_reserve()),
            setting,
        }
    }

    /// Refuses if less is available than is to be kept free.
    pub(crate) fn check(&self) -> Result<()> {
        match self.gauge.available() {
            Some(available) if available < self.bytes => Err(EngineError::new(
                ErrorKind::NoCapacity,
                format!(
                    "this host has {} of memory available and keeps {} free",
                    Size(available).readable(),
                    Size(self.bytes).readable()
                ),
            )
            .hint("stop or delete sandboxes; the setting `limits.memory_reserve` changes what is kept free")),
            _ => Ok(()),
        }
    }
}
