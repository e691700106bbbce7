//! This server among the others that share its store.
//!
//! Every start is a new node. Nodes say every two seconds that they are there; claims of a node that says nothing new
//! for [`NODE_LIVES`] are broken. A server that starts again in the same *slot* (a locked file in its data directory) knows
//! that its predecessor is dead and need not wait that long.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::FlockOperation;
use sandyard_core::ErrorKind;
use sandyard_store::model::Node;

use crate::error::{ServiceError, ServiceResult};
use crate::places::{NODE_LIVES, Reach};
use crate::service::Service;

/// Most servers on one data directory.
const MAX_SLOTS: usize = 64;

/// How this server takes part.
#[derive(Debug)]
pub struct NodeSetup {
    /// Its name, new at every start: `<slot>.<random>`.
    pub id: String,
    /// Where other nodes reach it; none: they do not.
    pub url: Option<String>,
    /// How to reach others; none: this server is alone.
    pub reach: Option<Reach>,
    /// Held as long as the server lives.
    slot: Option<File>,
}

impl NodeSetup {
    /// A server that shares nothing.
    pub fn alone() -> ServiceResult<Self> {
        Ok(Self {
            id: format!("alone.{}", random_word()?),
            url: None,
            reach: None,
            slot: None,
        })
    }

    /// A server that keeps its data in `data_dir`, in the first slot there that no living server has. `place` tells this
    /// data directory from those of other hosts.
    pub fn in_slot(
        data_dir: &Path,
        place: &str,
        url: Option<String>,
        reach: Option<Reach>,
    ) -> ServiceResult<Self> {
        let failed = |error: io::Error| {
            ServiceError::new(ErrorKind::Internal, "taking a node slot failed").source(error)
        };
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
                        id: format!("{place}-{number}.{}", random_word()?),
                        url,
                        reach,
                        slot: Some(file),
                    });
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Err(ServiceError::new(
            ErrorKind::Conflict,
            format!("{MAX_SLOTS} servers run on this data directory already"),
        ))
    }

    /// A name that stays the same over restarts in one slot, so that a new start can go on with its predecessor's leases.
    pub(crate) fn lease_name(&self) -> &str {
        self.slot_prefix().unwrap_or(&self.id)
    }

    /// What all starts in this slot have in common; none without a slot.
    fn slot_prefix(&self) -> Option<&str> {
        self.slot.as_ref()?;
        Some(&self.id[..=self.id.rfind('.')?])
    }
}

impl Service {
    /// Makes this node known, and ends what its predecessor in the same slot held: that one is dead, since we have its lock.
    pub(crate) async fn join(&self) -> ServiceResult<()> {
        self.beat().await?;
        let Some(prefix) = self.node().slot_prefix() else {
            return Ok(());
        };
        let nodes = self.store().nodes(0).await?;
        let others = nodes.into_iter().map(|node| node.id);
        let (dead, peers): (Vec<String>, Vec<String>) = others
            .filter(|id| id != self.node_id())
            .partition(|id| id.starts_with(prefix));
        // Until they are known to be dead: what a peer has begun is not left behind.
        self.set_has_peers(!peers.is_empty());
        self.bury(&dead).await
    }

    /// Says that this node is there.
    pub(crate) async fn beat(&self) -> ServiceResult<()> {
        let node = Node {
            id: self.node_id().to_owned(),
            url: self.node().url.clone(),
            locations: self.places().local_locations(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms: self.started_ms(),
            seen_ms: self.clock().now_ms(),
        };
        Ok(self.store().upsert_node(&node).await?)
    }

    /// Breaks the claims of nodes that have said nothing for long.
    ///
    /// How long is measured by our own clock since *we* saw them say something new, so that neither their clock nor a
    /// database that was away makes the living look dead.
    pub(crate) async fn bury_dead_nodes(&self) -> ServiceResult<()> {
        let nodes = self.store().nodes(0).await?;
        let now = Instant::now();
        let mut dead = Vec::new();
        {
            let mut peers = self.peers();
            peers.retain(|id, _| nodes.iter().any(|node| node.id == *id));
            for node in nodes.iter().filter(|node| node.id != self.node_id()) {
                let entry = peers.entry(node.id.clone()).or_insert((node.seen_ms, now));
                if entry.0 != node.seen_ms {
                    *entry = (node.seen_ms, now);
                } else if now.duration_since(entry.1) > NODE_LIVES {
                    dead.push(node.id.clone());
                }
            }
            self.set_has_peers(peers.len() > dead.len());
        }
        self.bury(&dead).await
    }

    async fn bury(&self, dead: &[String]) -> ServiceResult<()> {
        let broken = self.store().break_claims(dead).await?;
        for id in dead {
            self.store().remove_node(id).await?;
        }
        if !dead.is_empty() {
            self.recorders().adopt_again();
        }
        if !broken.is_empty() {
            tracing::info!(
                count = broken.len(),
                "Broke claims that a dead server left behind"
            );
        }
        Ok(())
    }

    /// Takes this node off the list.
    pub(crate) async fn leave(&self) {
        if let Err(error) = self.store().remove_node(self.node_id()).await {
            tracing::warn!(%error, "This node could not be taken off the list");
        }
    }
}

/// Ten random characters.
fn random_word() -> ServiceResult<String> {
    Ok(crate::random::id()?.as_str()[..10].to_owned())
}
