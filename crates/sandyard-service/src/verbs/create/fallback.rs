//! Creates a sandbox at another provider if the first choice cannot.
//!
//! The row moves before the next provider is called, under the same claim, so that it always names the location of an instance that may
//! be made. An instance that the previous provider has made without an answer has the sandbox's id; the reconciler of that location
//! finds that the row is elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;

use sandyard_core::Caller;
use sandyard_provider::{InstanceSpec, Provider, ProviderError, ProviderErrorKind};
use sandyard_store::model::{Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use super::choose::Choice;
use super::placement::{CreateContext, Placement};
use crate::claim::{CLAIM_TTL, Claim};
use crate::error::{Result, ServiceError};
use crate::service::Service;
use crate::state::provider_registry::location_of;
use sandyard_core::clock::millis;

/// The provider that makes a sandbox, those that are tried after it, and those that failed.
#[derive(Debug)]
pub(super) struct FallbackQueue {
    pub(super) placement: Placement,
    template: Option<String>,
    remaining: VecDeque<Arc<dyn Provider>>,
    failures: Vec<(String, ServiceError)>,
}

impl FallbackQueue {
    /// The first choice, if it was skipped because it is unreachable.
    pub(super) fn unreachable_first_choice(&self) -> Option<&str> {
        self.failures.first().map(|(name, _)| name.as_str())
    }

    /// The answer if all providers failed: the first failure, and the others that were tried.
    fn error(mut self) -> ServiceError {
        let (_, mut error) = self.failures.remove(0);
        if !self.failures.is_empty() {
            let others = self.failures.iter();
            let others: Vec<_> = others
                .map(|(name, error)| format!("`{name}`: {}", error.message))
                .collect();
            error.message = format!("{} (also tried: {})", error.message, others.join("; "));
        }
        error
    }
}

impl Service {
    /// Decides which provider is tried first. A request that the first choice would refuse fails even if that provider is unreachable.
    pub(super) async fn plan_fallback(
        &self,
        context: CreateContext<'_>,
        choice: Choice,
    ) -> Result<FallbackQueue> {
        if choice.fallbacks.is_empty() {
            self.try_to_reach(&choice.first).await;
        }
        let first = self
            .resolve_placement(context, choice.template.as_deref(), &choice.first)
            .await?;
        let mut queue = FallbackQueue {
            placement: first,
            template: choice.template,
            remaining: choice.fallbacks.into(),
            failures: Vec::new(),
        };
        let is_reachable = |provider: &Arc<dyn Provider>| self.condition_of(provider).is_reachable;
        let has_location = |provider: &Arc<dyn Provider>| location_of(provider).is_some();
        queue.remaining.retain(has_location);
        let first = queue.placement.provider.clone();
        // While some provider is reachable, unreachable ones are skipped.
        let has_reachable = is_reachable(&first) || queue.remaining.iter().any(is_reachable);
        if has_reachable {
            queue.remaining.retain(is_reachable);
        }
        let is_tried = match queue.remaining.is_empty() {
            true => has_location(&first),
            false => has_location(&first) && (is_reachable(&first) || !has_reachable),
        };
        if is_tried {
            return Ok(queue);
        }
        let name = first.info().name.clone();
        let reason = self.condition_of(&first).reason;
        // The reason may contain addresses and settings.
        let reason = reason.filter(|_| context.caller.is_admin());
        queue
            .failures
            .push((name.clone(), unreachable(&name, reason)));
        match self.try_next_provider(context, &mut queue).await {
            true => Ok(queue),
            false => Err(queue.error()),
        }
    }

    /// Creates the instance of a claimed row, at its provider or at the next one that can.
    pub(super) async fn create_with_fallback(
        &self,
        context: CreateContext<'_>,
        mut claim: Claim,
        mut spec: InstanceSpec,
        mut queue: FallbackQueue,
    ) -> Result<Sandbox> {
        loop {
            claim.check_held()?;
            let error = match queue.placement.provider.create(&spec).await {
                Err(error) if should_try_next(&error, &queue) => error,
                made => {
                    let provider = queue.placement.provider.clone();
                    return self
                        .finish_create(context.caller, claim, &provider, made)
                        .await;
                }
            };
            let is_certain = super::finish::is_certain(&error);
            let from = queue.placement.provider.info().name.clone();
            queue.failures.push((from.clone(), error.into()));
            if !self.try_next_provider(context, &mut queue).await {
                let error = queue.error();
                self.fail_create(context.caller, claim, &error, is_certain)
                    .await;
                return Err(error);
            }
            self.move_row(context.caller, &mut claim, &from, &queue)
                .await?;
            spec.template.clone_from(&queue.placement.template);
            let provider = &queue.placement.provider.info().name;
            spec.is_restricted = self.is_restricted(context.caller, provider, &spec.template);
            spec.limits.clone_from(&queue.placement.limits);
        }
    }

    /// Moves on to the next provider that can make the sandbox. Returns false if there is none.
    async fn try_next_provider(
        &self,
        context: CreateContext<'_>,
        queue: &mut FallbackQueue,
    ) -> bool {
        while let Some(provider) = queue.remaining.pop_front() {
            match self
                .resolve_placement(context, queue.template.as_deref(), &provider)
                .await
            {
                Ok(placement) => {
                    queue.placement = placement;
                    return true;
                }
                Err(error) => queue.failures.push((provider.info().name.clone(), error)),
            }
        }
        false
    }

    /// Records that another provider is tried now.
    async fn move_row(
        &self,
        caller: &Caller,
        claim: &mut Claim,
        from: &str,
        queue: &FallbackQueue,
    ) -> Result<()> {
        let info = queue.placement.provider.info();
        let why = queue.failures.iter().find(|(name, _)| name == from);
        let event = claim.event(
            "create_moved",
            caller,
            json!({
                "from": from,
                "to": info.name,
                "reason": why.map(|(_, error)| error.kind.code()),
                "detail": why.map(|(_, error)| error.message.as_str()),
            }),
        );
        let patch = SandboxPatch {
            provider: Some(info.name.clone()),
            location: Some(info.location.clone()),
            template: Some(queue.placement.template.clone()),
            limits: Some(queue.placement.limits.clone()),
            ..SandboxPatch::default()
        };
        // If this server dies now, the servers of the new location finish the row.
        let timer = TimerPlan::Set {
            due_ms: self.clock().now_ms() + millis(CLAIM_TTL),
        };
        claim.update(patch, vec![event], timer).await?;
        metrics::counter!("sandyard_creates_moved_total", "from" => from.to_owned(), "to" => info.name.clone())
            .increment(1);
        tracing::warn!(sandbox.id = %claim.row.id, from, to = info.name, "Creating `{}` at another provider", claim.row.id);
        Ok(())
    }
}

/// Says whether the next provider is tried after this failure. A refusal of the first choice is final; one of a fallback is not.
fn should_try_next(error: &ProviderError, queue: &FallbackQueue) -> bool {
    let is_first = queue.failures.is_empty();
    let is_unable = matches!(
        error.kind,
        ProviderErrorKind::NoCapacity
            | ProviderErrorKind::Unavailable
            | ProviderErrorKind::TimedOut
    );
    match is_first {
        true => is_unable && !queue.remaining.is_empty(),
        false => true,
    }
}

fn unreachable(name: &str, reason: Option<String>) -> ServiceError {
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    ServiceError::unavailable(format!("the provider `{name}` is unreachable{reason}"))
        .hint("GET /health shows when it is reachable again")
}
