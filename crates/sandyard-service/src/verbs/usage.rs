//! What a sandbox uses now.

use sandyard_core::Caller;
use sandyard_provider::Usage;

use crate::error::ServiceResult;
use crate::service::Service;

impl Service {
    /// What a sandbox uses now; does not wake it and is no activity.
    pub async fn usage(&self, caller: &Caller, name: &str) -> ServiceResult<Usage> {
        let sandbox = self.existing(caller, name).await?;
        let provider = self.places().provider(&sandbox.location).await?;
        let id = sandbox.provider_id.unwrap_or_default();
        Ok(provider.usage(&id).await?)
    }
}
