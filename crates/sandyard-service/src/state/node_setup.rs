//! How this server takes part among the servers that share its store.
//!
//! Every start is a new node. A server that starts again in the same *slot* (a locked file in its data directory) knows that its
//! predecessor is dead and need not wait for its heartbeat to time out.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::FlockOperation;

use super::provider_registry::NodeConnector;
use crate::error::{Result, ServiceError};
use crate::random;

/// Most servers on one data directory.
const MAX_SLOTS: usize = 64;
/// Random characters at the end of a node's id.
const RANDOM_LENGTH: usize = 10;

/// How this server takes part.
#[derive(Debug)]
pub struct NodeSetup {
    /// The node's id, new at every start: `<slot>.<random>`.
    pub id: String,
    /// The URL at which other nodes reach it; none if they do not.
    pub url: Option<String>,
    /// How to reach other nodes; none for a server that is alone.
    pub reach: Option<NodeConnector>,
    /// The lock on the slot, held as long as the server runs.
    slot: Option<File>,
}

impl NodeSetup {
    /// A server that shares nothing.
    pub fn alone() -> Result<Self> {
        Ok(Self {
            id: new_id("alone")?,
            url: None,
            reach: None,
            slot: None,
        })
    }

    /// A server that keeps its data in `data_dir`, in the first slot there that no running server has. `directory_id` tells this data
    /// directory from those of other hosts.
    pub fn in_slot(
        data_dir: &Path,
        directory_id: &str,
        url: Option<String>,
        reach: Option<NodeConnector>,
    ) -> Result<Self> {
        let failed =
            |error: io::Error| ServiceError::internal("failed to lock a node slot").source(error);
        let folder = data_dir.join("nodes");
        std::fs::create_dir_all(&folder).map_err(failed)?;
        for number in 0..MAX_SLOTS {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(folder.join(format!("{number}.lock")))
                .map_err(failed)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(Self {
                        id: new_id(&format!("{directory_id}-{number}"))?,
                        url,
                        reach,
                        slot: Some(file),
                    });
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Err(ServiceError::conflict(format!(
            "{MAX_SLOTS} servers run on this data directory already"
        )))
    }

    /// The holder of this server's leases. It stays the same over restarts in one slot, so that a new start takes over the leases of
    /// its predecessor.
    pub(crate) fn lease_name(&self) -> &str {
        self.slot_prefix().unwrap_or(&self.id)
    }

    /// What the ids of all starts in this slot begin with; none without a slot.
    pub(crate) fn slot_prefix(&self) -> Option<&str> {
        self.slot.as_ref()?;
        Some(&self.id[..=self.id.rfind('.')?])
    }
}

fn new_id(slot: &str) -> Result<String> {
    Ok(format!(
        "{slot}.{}",
        &random::id()?.as_str()[..RANDOM_LENGTH]
    ))
}
