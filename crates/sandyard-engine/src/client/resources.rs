//! Requests about templates, the pool of ready sandboxes and volumes.

use sandyard_core::SandboxId;
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

    /// Makes a template from a tar archive, plain or compressed. `progress` gets the number of bytes sent so far.
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

    /// Removes a template. Sandboxes made from it are not affected.
    pub async fn remove_template(&self, name: &str) -> Result<()> {
        self.ask_done(&Request::RemoveTemplate {
            name: name.to_owned(),
        })
        .await
    }

    /// Sets which ready sandboxes to keep. Returns when they are ready.
    pub async fn set_pool(&self, pool: Vec<PoolSpec>) -> Result<()> {
        self.ask_done(&Request::SetPool { pool }).await
    }

    /// The number of ready sandboxes.
    pub async fn ready_count(&self) -> Result<usize> {
        self.ask_count(&Request::PoolStatus).await
    }

    /// Copies a sandbox to `backup/sandboxes/<id>` in the data directory, as it is at one moment. Returns for how many milliseconds it
    /// was frozen.
    pub async fn backup_sandbox(&self, id: &SandboxId) -> Result<usize> {
        let id = id.clone();
        self.ask_count(&Request::BackupSandbox { id }).await
    }

    /// Copies a volume to `backup/volumes/<id>`. Returns for how many milliseconds the sandboxes that use it were frozen.
    pub async fn backup_volume(&self, id: &str) -> Result<usize> {
        let id = id.to_owned();
        self.ask_count(&Request::BackupVolume { id }).await
    }

    async fn ask_count(&self, request: &Request) -> Result<usize> {
        match self.ask(request).await? {
            Reply::Count(count) => Ok(count),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes an empty volume: a folder that outlives sandboxes and can be mounted in several at once. An existing one is not
    /// changed.
    pub async fn create_volume(&self, id: &str, size_bytes: u64) -> Result<()> {
        let id = id.to_owned();
        self.ask_done(&Request::CreateVolume { id, size_bytes })
            .await
    }

    /// Deletes a volume with all its files. Deleting one that does not exist succeeds.
    ///
    /// # Errors
    /// `Conflict` while a sandbox uses it.
    pub async fn delete_volume(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.ask_done(&Request::DeleteVolume { id }).await
    }

    /// Removes what crashes have left. The launcher also does so regularly.
    pub async fn sweep(&self) -> Result<()> {
        self.ask_done(&Request::Sweep).await
    }
}
