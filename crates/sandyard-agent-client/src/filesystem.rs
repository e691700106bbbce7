//! Names and attributes of files.

use sandyard_wire::filesystem::{
    EntryInfo, EntryResponse, ListDirRequest, ListDirResponse, MoveRequest, PathRequest,
};
use sandyard_wire::routes::filesystem as route;

use crate::client::AgentClient;
use crate::error::Result;

impl AgentClient {
    /// Reads the attributes of a file.
    pub async fn stat(&self, path: &str) -> Result<EntryInfo> {
        let reply: EntryResponse = self.unary(route::STAT, &of(path)).await?;
        Ok(reply.entry)
    }

    /// Lists a directory, down to `depth` levels.
    pub async fn list_dir(&self, path: &str, depth: u32) -> Result<Vec<EntryInfo>> {
        let request = ListDirRequest {
            path: path.to_owned(),
            depth,
        };
        let reply: ListDirResponse = self.unary(route::LIST_DIR, &request).await?;
        Ok(reply.entries)
    }

    /// Makes a directory, with its parents.
    pub async fn make_dir(&self, path: &str) -> Result<EntryInfo> {
        let reply: EntryResponse = self.unary(route::MAKE_DIR, &of(path)).await?;
        Ok(reply.entry)
    }

    /// Renames a file.
    pub async fn rename(&self, from: &str, to: &str) -> Result<EntryInfo> {
        let request = MoveRequest {
            source: from.to_owned(),
            destination: to.to_owned(),
        };
        let reply: EntryResponse = self.unary(route::MOVE, &request).await?;
        Ok(reply.entry)
    }

    /// Deletes a file, or a directory with its content. Deleting a missing file succeeds.
    pub async fn remove(&self, path: &str) -> Result<()> {
        self.order(route::REMOVE, &of(path)).await
    }
}

fn of(path: &str) -> PathRequest {
    PathRequest {
        path: path.to_owned(),
    }
}
