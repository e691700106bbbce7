//! Whether each provider of this server answers.
//!
//! A provider knows from its own calls how it has been of late ([`Provider::condition`]). Here it is asked now and then, so
//! that this stays fresh where nobody calls, and so that those who do not count their failures are seen through too.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_provider::{Capabilities, Condition, Provider, ProviderInfo};
use sandyard_store::model::Sandbox;

use crate::error::ServiceResult;
use crate::places::location_of;
use crate::service::Service;

/// How long a provider has to say that it is there.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long it has to be connected to.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// Failed checks in a row until it counts as not there: one may be bad luck.
const FAILURES: u32 = 2;

/// How the checks of each provider went, by name.
#[derive(Debug, Default)]
pub(crate) struct Checks(Mutex<HashMap<String, Condition>>);

impl Checks {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Condition>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether it answers again.
    fn note(&self, name: &str, failure: Option<String>, now_ms: i64) -> bool {
        let mut all = self.all();
        let known = all.entry(name.to_owned()).or_default();
        known.failures = match failure {
            Some(_) => known.failures.saturating_add(1),
            None => 0,
        };
        known.reason = failure;
        let is_reachable = known.failures < FAILURES;
        let is_news = is_reachable != known.is_reachable;
        if is_news {
            known.is_reachable = is_reachable;
            known.since_ms = Some(now_ms);
            match is_reachable {
                true => tracing::info!(provider = name, "Provider `{name}` answers again"),
                false => {
                    let reason = known.reason.as_deref().unwrap_or_default();
                    tracing::warn!(provider = name, reason, "Provider `{name}` does not answer");
                }
            }
        }
        is_news && is_reachable
    }
}

/// A provider of this server, as it is now.
#[derive(Clone, Debug)]
pub struct ProviderView {
    /// What it is. Its location is empty until it was reached for the first time.
    pub info: ProviderInfo,
    /// How it is.
    pub condition: Condition,
    /// Whether it makes what nobody asks another one for.
    pub is_default: bool,
}

impl Service {
    /// This server's providers, the default first.
    pub fn providers(&self) -> Vec<ProviderView> {
        let default = self.places().default();
        let local = self.places().local().iter();
        local
            .map(|provider| ProviderView {
                info: provider.info().clone(),
                condition: self.condition_of(provider),
                is_default: Arc::ptr_eq(provider, default),
            })
            .collect()
    }

    /// How many sandboxes each provider has, by status; also those of providers that are not this server's.
    pub async fn counts_by_provider(
        &self,
    ) -> ServiceResult<BTreeMap<String, BTreeMap<&'static str, i64>>> {
        let mut counts: BTreeMap<String, BTreeMap<&'static str, i64>> = BTreeMap::new();
        for (provider, status, count) in self.store().count_by_provider().await? {
            let of_provider = counts.entry(provider).or_default();
            of_provider.insert(status.as_str(), count);
        }
        Ok(counts)
    }

    /// What can be done with a sandbox; none: its provider is none of this server's.
    pub fn capabilities_of(&self, sandbox: &Sandbox) -> Option<Capabilities> {
        let places = self.places();
        let here = places.local_for(&sandbox.location);
        // Another node's of the same kind can do the same.
        let provider = here.or_else(|| places.named(&sandbox.provider))?;
        Some(provider.info().capabilities)
    }

    /// Asks all providers whether they answer.
    pub async fn check_providers(&self) {
        let local = self.places().local().iter();
        join_all(local.map(|provider| self.check_provider(provider))).await;
    }

    pub(crate) async fn check_provider(&self, provider: &Arc<dyn Provider>) {
        let note = |failure: Option<String>| {
            let name = &provider.info().name;
            self.checks().note(name, failure, self.clock().now_ms())
        };
        let mut check = provider.check_health();
        let answer = match tokio::time::timeout(ANSWER_WITHIN, &mut check).await {
            Ok(answer) => answer,
            Err(_) => {
                note(Some(format!(
                    "no answer within {} s",
                    ANSWER_WITHIN.as_secs()
                )));
                // Whoever is not connected yet may need longer for that than an answer takes.
                match tokio::time::timeout(CONNECT_WITHIN, check).await {
                    Ok(Ok(())) => Ok(()),
                    _ => return,
                }
            }
        };
        if note(answer.err().map(|error| error.to_string())) {
            self.revive_timers(provider).await;
        }
    }

    /// Gives timers that were given up while a provider did not answer another chance.
    async fn revive_timers(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        match self.timers().revive_all(location, i64::MAX).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(
                location,
                count,
                "Timers that were given up get another chance"
            ),
            Err(error) => {
                tracing::warn!(%error, location, "Timers that were given up rest on for now")
            }
        }
    }

    /// Gives a provider that was never reached the chance to be.
    pub(crate) async fn try_to_reach(&self, provider: &Arc<dyn Provider>) {
        if location_of(provider).is_none() {
            let _ = tokio::time::timeout(ANSWER_WITHIN, provider.check_health()).await;
        }
    }

    /// How a provider of this server is, by its own account and by ours.
    pub(crate) fn condition_of(&self, provider: &Arc<dyn Provider>) -> Condition {
        let own = provider.condition();
        if !own.is_reachable {
            return own;
        }
        let checked = self.checks().all().get(&provider.info().name).cloned();
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
                    .or_else(|| Some("it was not reached so far".to_owned())),
                ..own
            };
        }
        own
    }
}
