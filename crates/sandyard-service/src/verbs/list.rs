//! Lists sandboxes.

use sandyard_core::Caller;
use sandyard_store::model::{Page, Sandbox, SandboxFilter};

use crate::error::Result;
use crate::service::Service;

impl Service {
    /// Lists the caller's sandboxes. An admin sees all, unless the filter names an owner.
    pub async fn list(&self, caller: &Caller, mut filter: SandboxFilter) -> Result<Page<Sandbox>> {
        if !caller.is_admin() {
            filter.owner = Some(caller.name.clone());
        }
        Ok(self.store().list_sandboxes(&filter).await?)
    }

    /// Counts the sandboxes that [`Self::list`] returns over all pages.
    pub async fn count(&self, caller: &Caller, mut filter: SandboxFilter) -> Result<i64> {
        if !caller.is_admin() {
            filter.owner = Some(caller.name.clone());
        }
        Ok(self.store().count_matching(&filter).await?)
    }
}
