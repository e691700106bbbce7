//! Lists events of sandboxes, also of deleted ones.

use std::time::Duration;

use sandyard_core::Caller;
use sandyard_store::model::{Event, EventFilter};

use crate::error::Result;
use crate::service::Service;

impl Service {
    /// Lists events of the caller's sandboxes.
    pub async fn events(&self, caller: &Caller, mut filter: EventFilter) -> Result<Vec<Event>> {
        if !caller.is_admin() {
            filter.owner = Some(caller.name.clone());
        }
        // Events of commands are saved in batches; the answer must have the last one.
        self.history().flush().await;
        Ok(self.store().events(&filter).await?)
    }

    /// Waits until there may be newer events: at most a second, because other servers do not notify this one.
    pub async fn wait_for_events(&self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.next_change()).await;
    }

    /// Completes after the next commit of this server. Create it before reading a row, so that no change is missed. Changes by other
    /// servers do not complete it.
    pub fn next_change(&self) -> impl Future<Output = ()> + Send + '_ {
        self.changes().notified()
    }
}
