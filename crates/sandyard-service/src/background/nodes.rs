//! This server among the others that share its store.
//!
//! Each node sends a heartbeat every two seconds. A node whose heartbeat does not change for [`NODE_TIMEOUT`] is dead: its claims are
//! broken.

use std::time::Instant;

use sandyard_store::model::Node;

use crate::error::Result;
use crate::service::Service;
use crate::state::provider_registry::NODE_TIMEOUT;

impl Service {
    /// Registers this node, and ends what its predecessor in the same slot held. The predecessor is dead, because this server has the
    /// slot's lock.
    pub(crate) async fn join_cluster(&self) -> Result<()> {
        self.write_heartbeat().await?;
        let Some(prefix) = self.node().slot_prefix() else {
            return Ok(());
        };
        let nodes = self.store().nodes(0).await?;
        let others = nodes.into_iter().map(|node| node.id);
        let (dead, peers): (Vec<String>, Vec<String>) = others
            .filter(|id| id != self.node_id())
            .partition(|id| id.starts_with(prefix));
        // A peer counts as alive until its heartbeat times out, so what it has begun is not taken from it.
        self.set_has_peers(!peers.is_empty());
        self.mark_dead(&dead).await
    }

    pub(crate) async fn write_heartbeat(&self) -> Result<()> {
        let node = Node {
            id: self.node_id().to_owned(),
            url: self.node().url.clone(),
            locations: self.registry().local_locations(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms: self.started_ms(),
            seen_ms: self.clock().now_ms(),
        };
        Ok(self.store().upsert_node(&node).await?)
    }

    /// Breaks the claims of nodes that have sent no heartbeat for [`NODE_TIMEOUT`].
    ///
    /// The time-out counts by this server's steady clock from when *it* last saw a new heartbeat. So neither the node's clock nor an
    /// outage of the database makes a running node look dead.
    pub(crate) async fn expire_dead_nodes(&self) -> Result<()> {
        let nodes = self.store().nodes(0).await?;
        let now = Instant::now();
        let mut dead = Vec::new();
        {
            let mut peers = self.peers();
            peers.retain(|id, _| nodes.iter().any(|node| node.id == *id));
            for node in nodes.iter().filter(|node| node.id != self.node_id()) {
                let (seen_ms, since) = peers.entry(node.id.clone()).or_insert((node.seen_ms, now));
                if *seen_ms != node.seen_ms {
                    (*seen_ms, *since) = (node.seen_ms, now);
                } else if now.duration_since(*since) > NODE_TIMEOUT {
                    dead.push(node.id.clone());
                }
            }
            self.set_has_peers(peers.len() > dead.len());
        }
        self.mark_dead(&dead).await
    }

    async fn mark_dead(&self, nodes: &[String]) -> Result<()> {
        let broken = self.store().break_claims(nodes).await?;
        for id in nodes {
            self.store().remove_node(id).await?;
        }
        if !nodes.is_empty() {
            self.recorders().request_adoption();
        }
        if !broken.is_empty() {
            tracing::info!(count = broken.len(), "Broke the claims of dead servers");
        }
        Ok(())
    }

    /// Removes this node from the list of nodes.
    pub(crate) async fn leave_cluster(&self) {
        if let Err(error) = self.store().remove_node(self.node_id()).await {
            tracing::warn!(%error, "Failed to remove this node from the list of nodes");
        }
    }
}
