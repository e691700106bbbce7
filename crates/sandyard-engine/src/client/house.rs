//! What sandboxes are made from, kept ready and share: templates, the pool and volumes.

use sandyard_template::Template;
use tokio::io::AsyncRead;

use super::{Engine, unexpected};
use crate::error::Result;
use crate::protocol::{PoolSpec, Reply, Request};

impl Engine {
    /// Lists templates.
    pub async fn templates(&self) -> Result<Vec<Template>> {
        match self.ask(&Request::ListTemplates).await? {
            Reply::Templates(templates) => Ok(templates),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes a template from a tar archive, plain or compressed. `progress` hears how many bytes have been sent.
    pub async fn import_template(
        &self,
        name: &str,
        archive: impl AsyncRead + Unpin,
        progress: impl FnMut(u64),
    ) -> Result<Template> {
        let mut connection = self.dial().await?;
        match connection
            .import(
                &Request::ImportTemplate {
                    name: name.to_owned(),
                },
                archive,
                progress,
            )
            .await??
        {
            Reply::Template(template) => Ok(*template),
            other => Err(unexpected(&other)),
        }
    }

    /// Removes a template. Sandboxes made from it stay whole.
    pub async fn remove_template(&self, name: &str) -> Result<()> {
        self.ask_done(&Request::RemoveTemplate {
            name: name.to_owned(),
        })
        .await
    }

    /// Says which ready sandboxes to keep from now on; returns when they are there.
    pub async fn set_pool(&self, pool: Vec<PoolSpec>) -> Result<()> {
        self.ask_done(&Request::SetPool { pool }).await
    }

    /// Says how many sandboxes are ready.
    pub async fn ready_count(&self) -> Result<usize> {
        match self.ask(&Request::PoolStatus).await? {
            Reply::Count(count) => Ok(count),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes an empty volume: a folder that outlives sandboxes and can be in several at once. One that is there stays as it is.
    pub async fn create_volume(&self, id: &str, size_bytes: u64) -> Result<()> {
        let id = id.to_owned();
        self.ask_done(&Request::CreateVolume { id, size_bytes })
            .await
    }

    /// Removes a volume with all that is in it; removing what is not there succeeds. Refused while a sandbox has it.
    pub async fn delete_volume(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.ask_done(&Request::DeleteVolume { id }).await
    }

    /// Puts right whatever crashes have left. The launcher does so by itself, too.
    pub async fn sweep(&self) -> Result<()> {
        self.ask_done(&Request::Sweep).await
    }
}
