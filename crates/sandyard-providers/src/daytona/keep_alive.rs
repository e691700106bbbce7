//! Daytona stops idle sandboxes. While this server runs, it decides about that, so it reports all running sandboxes as active.

use std::sync::Arc;

use http::Method;
use serde_json::json;

use super::Shared;
use super::model::{Sandbox, State};
use crate::date::parse_rfc3339_ms;

/// Number of concurrent reports.
const CONCURRENCY: usize = 4;

impl Shared {
    /// Reports running sandboxes as active, in the background, unless that was done recently. `now_ms` is Daytona's clock.
    pub(super) fn keep_alive(self: &Arc<Self>, all: &[Sandbox], now_ms: i64) {
        let minutes = self.auto_stop_minutes;
        let due = all
            .iter()
            .filter(|sandbox| is_due(sandbox, now_ms, minutes));
        let due: Vec<String> = due.map(|sandbox| sandbox.id.clone()).collect();
        let shared = self.clone();
        self.activity_batches.begin(due, CONCURRENCY, move |id| {
            let shared = shared.clone();
            async move {
                let path = ["sandbox", id.as_str(), "last-activity"];
                let request = shared.api.to(Method::POST, &path);
                let result = shared.api.send_only("activity", request.json(&json!({}))).await;
                if let Err(error) = &result {
                    tracing::debug!(instance.id = id, %error, "Failed to report a sandbox as active");
                }
                result
            }
        });
    }
}

/// Whether a sandbox is running and was not active for a quarter of the idle time.
fn is_due(sandbox: &Sandbox, now_ms: i64, minutes: u64) -> bool {
    let quarter_ms = i64::try_from(minutes.saturating_mul(60_000 / 4)).unwrap_or(i64::MAX);
    let active_ms = sandbox
        .last_activity_at
        .as_deref()
        .and_then(parse_rfc3339_ms);
    minutes > 0
        && sandbox.state == State::Started
        && active_ms.is_none_or(|active_ms| now_ms.saturating_sub(active_ms) >= quarter_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_sandboxes_without_recent_activity_are_reported() {
        let sandbox = |state: &str| {
            let value =
                json!({"id": "a", "state": state, "lastActivityAt": "1970-01-01T00:10:00Z"});
            serde_json::from_value::<Sandbox>(value).expect("a sandbox")
        };
        let ten_minutes = 600_000;
        assert!(is_due(&sandbox("started"), ten_minutes + 15_000, 1));
        assert!(!is_due(&sandbox("started"), ten_minutes + 14_999, 1));
        assert!(!is_due(&sandbox("stopped"), ten_minutes * 9, 1));
        assert!(!is_due(&sandbox("started"), ten_minutes * 9, 0));
    }
}
