//! The servers that share the store.

use sqlx::any::AnyRow;

use crate::error::Result;
use crate::model::Node;
use crate::sql::{Record, sql};
use crate::store::Store;

impl Store {
    /// Records the heartbeat of a node.
    pub async fn upsert_node(&self, node: &Node) -> Result<()> {
        let upsert = sql("INSERT INTO nodes (id, url, locations, version, started_ms, seen_ms) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET url = excluded.url, \
             locations = excluded.locations, version = excluded.version, started_ms = excluded.started_ms, \
             seen_ms = excluded.seen_ms")
        .text(&node.id)
        .maybe_text(node.url.as_deref())
        .json(&node.locations)
        .text(&node.version)
        .int(node.started_ms)
        .int(node.seen_ms)
        .repeatable();
        self.db
            .execute("recording the heartbeat of a node", upsert)
            .await?;
        Ok(())
    }

    /// Removes a node.
    pub async fn remove_node(&self, id: &str) -> Result<()> {
        let remove = sql("DELETE FROM nodes WHERE id = $1").text(id).repeatable();
        self.db.execute("removing a node", remove).await?;
        Ok(())
    }

    /// Lists the nodes with a heartbeat since a time, by id.
    pub async fn nodes(&self, seen_since_ms: i64) -> Result<Vec<Node>> {
        let query = sql(
            "SELECT id, url, locations, version, started_ms, seen_ms FROM nodes WHERE seen_ms >= $1",
        );
        let rows = self
            .db
            .read("listing nodes", query.int(seen_since_ms))
            .await?;
        let mut nodes = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        nodes.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(nodes)
    }
}

fn read(row: &AnyRow) -> Result<Node> {
    let record = Record::new("nodes", row);
    Ok(Node {
        id: record.text("id")?,
        url: record.maybe_text("url")?,
        locations: record.json("locations")?,
        version: record.text("version")?,
        started_ms: record.int("started_ms")?,
        seen_ms: record.int("seen_ms")?,
    })
}
