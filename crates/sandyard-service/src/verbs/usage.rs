//! What a sandbox uses now, and used of late.

use sandyard_core::Caller;
use sandyard_provider::{Usage, UsagePoint};

use super::snapshot::unsupported;
use crate::error::ServiceResult;
use crate::service::Service;

impl Service {
    /// What a sandbox uses now; does not wake it and is no activity.
    pub async fn usage(&self, caller: &Caller, name: &str) -> ServiceResult<Usage> {
        let sandbox = self.existing(caller, name).await?;
        let provider = self.places().provider_of(&sandbox).await?;
        let id = sandbox.provider_id.unwrap_or_default();
        Ok(provider.usage(&id).await?)
    }

    /// What a sandbox used between two moments, oldest first, as far back as its place knows: an hour at most, with a point
    /// every five seconds that it ran. Does not wake it and is no activity.
    pub async fn usage_history(
        &self,
        caller: &Caller,
        name: &str,
        from_ms: i64,
        to_ms: i64,
    ) -> ServiceResult<Vec<UsagePoint>> {
        let sandbox = self.existing(caller, name).await?;
        let provider = self.places().provider_of(&sandbox).await?;
        if !provider.info().capabilities.can_recall_usage {
            return Err(unsupported("tell the history of", &sandbox.provider));
        }
        let id = sandbox.provider_id.unwrap_or_default();
        Ok(provider.usage_history(&id, from_ms, to_ms).await?)
    }
}
