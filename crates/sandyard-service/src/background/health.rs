//! The health of this server's providers.
//!
//! A provider knows from its recent calls whether it is reachable ([`Provider::condition`]). A check every few seconds keeps that current
//! where no calls are made, and covers providers that do not count their failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_provider::{Capabilities, Condition, Provider, ProviderInfo};
use sandyard_store::model::Sandbox;

use crate::error::Result;
use crate::service::Service;
use crate::state::provider_registry::location_of;

/// How long a provider may take to answer a health check.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long connecting to a provider may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// A provider of this server and its health.
#[derive(Clone, Debug)]
pub struct ProviderView {
    /// Name, location and capabilities. The location is empty until the provider was reached for the first time.
    pub info: ProviderInfo,
    /// Whether it is reachable, and why not.
    pub condition: Condition,
    /// Whether it is the default provider.
    pub is_default: bool,
}

impl Service {
    /// This server's providers, the default first.
    pub fn providers(&self) -> Vec<ProviderView> {
        let default = self.registry().default();
        let local = self.registry().local().iter();
        local
            .map(|provider| ProviderView {
                info: provider.info().clone(),
                condition: self.condition_of(provider),
                is_default: Arc::ptr_eq(provider, default),
            })
            .collect()
    }

    /// Counts sandboxes by provider and status, including providers that this server does not have.
    pub async fn counts_by_provider(
        &self,
    ) -> Result<BTreeMap<String, BTreeMap<&'static str, i64>>> {
        let mut counts: BTreeMap<String, BTreeMap<&'static str, i64>> = BTreeMap::new();
        for (provider, status, count) in self.store().count_by_provider().await? {
            let of_provider = counts.entry(provider).or_default();
            of_provider.insert(status.as_str(), count);
        }
        Ok(counts)
    }

    /// The capabilities of a sandbox's provider; none if this server does not have that provider.
    pub fn capabilities_of(&self, sandbox: &Sandbox) -> Option<Capabilities> {
        let registry = self.registry();
        let local = registry.local_for(&sandbox.location);
        // A provider of the same name on another node has the same capabilities.
        let provider = local.or_else(|| registry.by_name(&sandbox.provider))?;
        Some(provider.info().capabilities)
    }

    /// Checks the health of all providers.
    pub async fn check_providers(&self) {
        let local = self.registry().local().iter();
        join_all(local.map(|provider| self.check_provider(provider))).await;
    }

    pub(crate) async fn check_provider(&self, provider: &Arc<dyn Provider>) {
        let record = |failure: Option<String>| {
            let name = &provider.info().name;
            self.health_checks()
                .record(name, failure, self.clock().now_ms())
        };
        let mut check = provider.check_health();
        let answer = match tokio::time::timeout(ANSWER_WITHIN, &mut check).await {
            Ok(answer) => answer,
            Err(_) => {
                record(Some(format!(
                    "no answer within {} s",
                    ANSWER_WITHIN.as_secs()
                )));
                // Connecting may take longer than an answer.
                match tokio::time::timeout(CONNECT_WITHIN, check).await {
                    Ok(Ok(())) => Ok(()),
                    _ => return,
                }
            }
        };
        if record(answer.err().map(|error| error.to_string())) {
            self.revive_timers(provider).await;
        }
    }

    /// Revives timers that failed for good while a provider was unreachable.
    async fn revive_timers(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        match self.timers().revive_all(location, i64::MAX).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(location, count, "Revived dead timers"),
            Err(error) => {
                tracing::warn!(%error, location, "Failed to revive dead timers")
            }
        }
    }

    /// Tries to reach a provider that was never reached.
    pub(crate) async fn try_to_reach(&self, provider: &Arc<dyn Provider>) {
        if location_of(provider).is_none() {
            let _ = tokio::time::timeout(ANSWER_WITHIN, provider.check_health()).await;
        }
    }

    /// Whether a provider is reachable, by its own count of failures and by the health checks.
    pub(crate) fn condition_of(&self, provider: &Arc<dyn Provider>) -> Condition {
        let own = provider.condition();
        if !own.is_reachable {
            return own;
        }
        let checked = self.health_checks().get(&provider.info().name);
        if let Some(checked) = checked.filter(|checked| !checked.is_reachable) {
            return Condition {
                calls: own.calls,
                ..checked
            };
        }
        if location_of(provider).is_none() {
            return Condition {
                is_reachable: false,
                reason: own
                    .reason
                    .or_else(|| Some("it has not been reached yet".to_owned())),
                ..own
            };
        }
        own
    }
}
