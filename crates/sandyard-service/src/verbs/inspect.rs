//! Finds a sandbox.

use sandyard_core::{Caller, SandboxStatus};
use sandyard_store::model::Sandbox;

use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

/// Longest name anybody may ask for.
const MAX_NAME: usize = 200;

impl Service {
    /// Finds a sandbox of the caller's by id, provider's id or alias; deleted ones too.
    pub async fn inspect(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        let owner = (!caller.is_admin()).then_some(caller.name.as_str());
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            return Err(ServiceError::no_sandbox(name));
        }
        self.store()
            .find_sandbox(name, owner)
            .await?
            .filter(|sandbox| caller.owns(&sandbox.owner))
            .ok_or_else(|| ServiceError::no_sandbox(name))
    }

    /// The same, but not one that is deleted or on its way out.
    pub(crate) async fn existing(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        let sandbox = self.inspect(caller, name).await?;
        match sandbox.status {
            SandboxStatus::Deleting | SandboxStatus::Deleted => Err(ServiceError::no_sandbox(name)
                .hint("it was deleted; GET /sandboxes/{id}/events tells its story")),
            _ => Ok(sandbox),
        }
    }

    /// Finds a sandbox for a preview, whoever asks.
    pub async fn find_for_preview(&self, name: &str) -> ServiceResult<Sandbox> {
        self.existing(&Caller::system(), name).await
    }
}
