//! Finds a sandbox.

use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_store::model::Sandbox;

use crate::error::{Result, ServiceError};
use crate::service::Service;

/// Longest id or alias that is looked up, in bytes.
const MAX_NAME: usize = 200;

impl Service {
    /// Finds a sandbox of the caller by id, provider's id or alias. Finds deleted ones too.
    pub async fn inspect(&self, caller: &Caller, name: &str) -> Result<Sandbox> {
        let owner = (!caller.is_admin()).then_some(caller.name.as_str());
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            return Err(ServiceError::no_sandbox(name));
        }
        let sandbox = self
            .store()
            .find_sandbox(name, owner)
            .await?
            .filter(|sandbox| caller.can_access(&sandbox.owner))
            .ok_or_else(|| ServiceError::no_sandbox(name))?;
        if owner.is_none() {
            self.check_alias(name, &sandbox).await?;
        }
        Ok(sandbox)
    }

    /// The same, but fails for a sandbox that is deleted or being deleted.
    pub(crate) async fn existing(&self, caller: &Caller, name: &str) -> Result<Sandbox> {
        let sandbox = self.inspect(caller, name).await?;
        match sandbox.status {
            SandboxStatus::Deleting | SandboxStatus::Deleted => Err(ServiceError::no_sandbox(name)
                .hint("it was deleted; GET /sandboxes/{id}/events lists what happened to it")),
            _ => Ok(sandbox),
        }
    }

    /// Finds a sandbox for a preview, for any caller; deleted ones too. Only by its id: any user may choose an alias, which could take
    /// over the host name of another user's preview.
    pub async fn find_for_preview(&self, id: &str) -> Result<Option<Sandbox>> {
        match id.parse::<SandboxId>() {
            Ok(id) => Ok(self.store().sandbox(&id).await?),
            Err(_) => Ok(None),
        }
    }

    /// Fails if several owners have a sandbox with this alias, for a caller who sees all of them.
    async fn check_alias(&self, name: &str, sandbox: &Sandbox) -> Result<()> {
        let is_by_alias = sandbox.alias.as_deref() == Some(name)
            && sandbox.id.as_str() != name
            && sandbox.provider_id.as_deref() != Some(name);
        if is_by_alias && self.store().count_alias(name).await? > 1 {
            return Err(ServiceError::conflict(format!(
                "several owners have a sandbox with the alias `{name}`"
            ))
            .hint("use its id"));
        }
        Ok(())
    }
}
