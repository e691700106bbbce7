//! The resource usage of a sandbox, current and recent.

use sandyard_core::Caller;
use sandyard_provider::{Usage, UsagePoint};

use super::snapshot::unsupported;
use crate::error::Result;
use crate::service::Service;

impl Service {
    /// The current resource usage of a sandbox. Does not wake it and is not activity.
    pub async fn usage(&self, caller: &Caller, name: &str) -> Result<Usage> {
        let sandbox = self.existing(caller, name).await?;
        let provider = self.registry().provider_of(&sandbox).await?;
        let id = sandbox.provider_id.unwrap_or_default();
        Ok(provider.usage(&id).await?)
    }

    /// The resource usage of a sandbox between two times, oldest first. Providers keep at most an hour, with a point every five seconds
    /// while it runs. Does not wake it and is not activity.
    pub async fn usage_history(
        &self,
        caller: &Caller,
        name: &str,
        from_ms: i64,
        to_ms: i64,
    ) -> Result<Vec<UsagePoint>> {
        let sandbox = self.existing(caller, name).await?;
        let provider = self.registry().provider_of(&sandbox).await?;
        if !provider.info().capabilities.can_recall_usage {
            return Err(unsupported(
                "report the usage history of",
                &sandbox.provider,
            ));
        }
        let id = sandbox.provider_id.unwrap_or_default();
        Ok(provider.usage_history(&id, from_ms, to_ms).await?)
    }
}
