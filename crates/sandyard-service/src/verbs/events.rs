//! What happened to sandboxes, also after their deletion.

use std::time::Duration;

use sandyard_core::Caller;
use sandyard_store::model::{Event, EventFilter};

use crate::error::ServiceResult;
use crate::service::Service;

impl Service {
    /// What happened to the caller's sandboxes.
    pub async fn events(
        &self,
        caller: &Caller,
        mut filter: EventFilter,
    ) -> ServiceResult<Vec<Event>> {
        if !caller.is_admin() {
            filter.owner = Some(caller.name.clone());
        }
        // Commands are written down in batches; who asks wants to see the last one too.
        self.history().flush().await;
        Ok(self.store().events(&filter).await?)
    }

    /// Waits until there may be newer events, a second at most: other servers do not ring here.
    pub async fn wait_for_events(&self) {
        let rung = self.news().notified();
        let _ = tokio::time::timeout(Duration::from_secs(1), rung).await;
    }
}
