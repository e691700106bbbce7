//! The results of this server's health checks of its providers.

use std::collections::HashMap;

use parking_lot::Mutex;
use sandyard_provider::Condition;

/// Failed checks in a row after which a provider counts as unreachable. A single failure may be chance.
const MAX_FAILURES: u32 = 2;

/// The results, by the provider's name.
#[derive(Debug, Default)]
pub(crate) struct HealthChecks(Mutex<HashMap<String, Condition>>);

impl HealthChecks {
    pub(crate) fn get(&self, provider: &str) -> Option<Condition> {
        self.0.lock().get(provider).cloned()
    }

    /// Records the result of a check. Returns true if the provider is reachable again.
    pub(crate) fn record(&self, provider: &str, failure: Option<String>, now_ms: i64) -> bool {
        let mut conditions = self.0.lock();
        let condition = conditions.entry(provider.to_owned()).or_default();
        condition.failures = match failure {
            Some(_) => condition.failures.saturating_add(1),
            None => 0,
        };
        condition.reason = failure;
        let is_reachable = condition.failures < MAX_FAILURES;
        if is_reachable == condition.is_reachable {
            return false;
        }
        condition.is_reachable = is_reachable;
        condition.since_ms = Some(now_ms);
        match is_reachable {
            true => tracing::info!(provider, "Provider `{provider}` is reachable again"),
            false => {
                let reason = condition.reason.as_deref().unwrap_or_default();
                tracing::warn!(provider, reason, "Provider `{provider}` is unreachable");
            }
        }
        is_reachable
    }
}
