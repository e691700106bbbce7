//! Reacts to jumps of the wall clock: see [`crate::state::clock_watch`].

use sandyard_core::SandboxStatus;
use sandyard_store::SANDBOX_TOPIC;

use crate::error::Result;
use crate::service::Service;

impl Service {
    /// Looks for a jump of the wall clock, and repairs what a jump back did.
    pub(crate) async fn check_clock(&self) {
        let jump_ms = self.clock_watch().take_jump(self.clock());
        if jump_ms > 0 {
            tracing::warn!(
                jump_ms,
                "The clock jumped forward: sandboxes whose retention is over are deleted in an hour, unless the clock is set back"
            );
        }
        if jump_ms < 0 {
            tracing::warn!(jump_ms, "The clock jumped back");
            if let Err(error) = self.rewind_activity().await {
                tracing::warn!(%error, "Failed to adjust activity after a clock jump: sandboxes may be paused too late");
            }
        }
    }

    /// Says whether sandboxes and history may be deleted now because their time is over.
    pub(crate) fn may_delete_by_time(&self) -> bool {
        !self.clock_watch().is_held(self.clock())
    }

    /// Sets activity that lies in the future to now, and the timers that follow from it.
    async fn rewind_activity(&self) -> Result<()> {
        let now_ms = self.clock().now_ms();
        self.activity().rewind(now_ms);
        self.store().rewind_activity(now_ms).await?;
        for location in self.registry().local_locations() {
            let rows = self.rows_of(&location).await?;
            for row in rows
                .iter()
                .filter(|row| row.status == SandboxStatus::Running)
            {
                // Too early is harmless: a timer that fires reads the row.
                let due_ms = now_ms.saturating_add(row.timeout_s.saturating_mul(1000));
                self.timers()
                    .set(SANDBOX_TOPIC, row.id.as_str(), &location, due_ms)
                    .await?;
            }
        }
        Ok(())
    }
}
