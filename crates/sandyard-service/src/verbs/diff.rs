//! Lists the files that differ from the template.

use sandyard_core::Caller;
use sandyard_provider::Change;

use super::snapshot::unsupported;
use crate::error::Result;
use crate::service::Service;

impl Service {
    /// Lists the files of a sandbox that differ from its template. Does not wake the sandbox.
    pub async fn diff(&self, caller: &Caller, name: &str) -> Result<Vec<Change>> {
        let sandbox = self.existing(caller, name).await?;
        let provider = self.registry().provider_of(&sandbox).await?;
        if !provider.info().capabilities.can_diff {
            return Err(unsupported("diff", &sandbox.provider));
        }
        let id = sandbox.provider_id.unwrap_or_default();
        Ok(provider.diff(&id).await?)
    }
}
