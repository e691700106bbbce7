//! Deletes sandboxes that have not run for a long time.

use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_store::model::SandboxFilter;

use crate::error::{Result, ServiceError};
use crate::service::Service;

impl Service {
    /// Deletes the caller's sandboxes that have been paused or stopped for longer than `hours`.
    pub async fn clean_up(&self, caller: &Caller, hours: f64) -> Result<Vec<SandboxId>> {
        if !(0.0..=1_000_000.0).contains(&hours) {
            return Err(ServiceError::invalid(
                "hours",
                "`hours` must be between 0 and 1000000",
            ));
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
        let before_ms = self.clock().now_ms() - (hours * 3_600_000.0) as i64;
        let mut filter = SandboxFilter {
            statuses: vec![SandboxStatus::Paused, SandboxStatus::Stopped],
            stopped_before_ms: Some(before_ms.saturating_add(1)),
            ..SandboxFilter::default()
        };
        let mut removed = Vec::new();
        loop {
            let page = self.list(caller, filter.clone()).await?;
            for sandbox in page.items {
                self.delete(caller, sandbox.id.as_str()).await?;
                removed.push(sandbox.id);
            }
            match page.next {
                Some(cursor) => filter.cursor = Some(cursor),
                None => return Ok(removed),
            }
        }
    }
}
