//! Daytona stops what nobody uses. As long as this server is there it decides about that, so it says that all are in use.

use std::sync::Arc;

use http::Method;
use serde_json::json;

use super::Shared;
use super::model::{Sandbox, State};
use crate::date::parse_rfc3339_ms;

/// How many are told of at once.
const AT_ONCE: usize = 4;

impl Shared {
    /// Says of running sandboxes that they are in use, in the background, where it was not said for a while.
    /// `now_ms` is by their clock, which their times are of.
    pub(super) fn keep_alive(self: &Arc<Self>, all: &[Sandbox], now_ms: i64) {
        let minutes = self.auto_stop_minutes;
        let due = all.iter().filter(|one| is_due(one, now_ms, minutes));
        let due: Vec<String> = due.map(|one| one.id.clone()).collect();
        let shared = self.clone();
        self.keeping.begin(due, AT_ONCE, move |id| {
            let shared = shared.clone();
            async move {
                let path = ["sandbox", id.as_str(), "last-activity"];
                let asked = shared.api.to(Method::POST, &path);
                let told = shared.api.tell("activity", asked.json(&json!({}))).await;
                if let Err(error) = &told {
                    tracing::debug!(instance.id = id, %error, "Could not say that a sandbox is in use");
                }
                told
            }
        });
    }
}

/// Says whether it is to be told: a running one of whose use nothing was heard for a quarter of the time.
fn is_due(sandbox: &Sandbox, now_ms: i64, minutes: u64) -> bool {
    let quarter_ms = i64::try_from(minutes.saturating_mul(60_000 / 4)).unwrap_or(i64::MAX);
    let used_ms = sandbox
        .last_activity_at
        .as_deref()
        .and_then(parse_rfc3339_ms);
    minutes > 0
        && sandbox.state == State::Started
        && used_ms.is_none_or(|used_ms| now_ms.saturating_sub(used_ms) >= quarter_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_ones_that_were_not_used_of_late_are_told() {
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
