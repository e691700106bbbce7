//! Another provider when the first choice cannot.
//!
//! The row moves before the next provider is asked, under the same claim: at every moment it says where an instance may be
//! made. What the one before may still have made without having said so carries the sandbox's id, and the reconciler of that
//! place finds that the row is elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind, Limits};
use sandyard_provider::{InstanceSpec, Provider, ProviderError, ProviderErrorKind};
use sandyard_store::model::{Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use super::choose::{Choice, is_default};
use crate::claim::{CLAIM_FOR, Claim, millis};
use crate::error::{ServiceError, ServiceResult};
use crate::places::location_of;
use crate::request::CreateRequest;
use crate::service::Service;

/// What a sandbox is to be with one provider.
#[derive(Debug)]
pub(super) struct Fit {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) template: String,
    pub(super) limits: Limits,
}

/// Who asks for what, whoever makes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'r> {
    pub(super) caller: &'r Caller,
    pub(super) owner: &'r str,
    pub(super) request: &'r CreateRequest,
}

/// Who makes a sandbox, who else may, and who could not.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) fit: Fit,
    template: Option<String>,
    others: VecDeque<Arc<dyn Provider>>,
    failures: Vec<(String, ServiceError)>,
}

impl Line {
    /// Those that were passed over before anybody was asked, for the first event.
    pub(super) fn passed_over(&self) -> Option<&str> {
        self.failures.first().map(|(name, _)| name.as_str())
    }

    /// The answer when nobody could: the first failure, and who else was asked.
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
    /// Finds out who is asked first. What makes no sense for the first choice is refused, also when that cannot be reached.
    pub(super) async fn line_up(&self, asked: Asked<'_>, choice: Choice) -> ServiceResult<Line> {
        if choice.others.is_empty() {
            self.try_to_reach(&choice.first).await;
        }
        let first = self
            .fit(asked, choice.template.as_deref(), &choice.first)
            .await?;
        let mut line = Line {
            fit: first,
            template: choice.template,
            others: choice.others.into(),
            failures: Vec::new(),
        };
        let is_open = |provider: &Arc<dyn Provider>| self.condition_of(provider).is_reachable;
        let is_placed = |provider: &Arc<dyn Provider>| location_of(provider).is_some();
        line.others.retain(is_placed);
        let first = line.fit.provider.clone();
        // As long as anybody can be reached, nobody waits for those who cannot.
        let has_open = is_open(&first) || line.others.iter().any(is_open);
        if has_open {
            line.others.retain(is_open);
        }
        let is_asked = match line.others.is_empty() {
            true => is_placed(&first),
            false => is_placed(&first) && (is_open(&first) || !has_open),
        };
        if is_asked {
            return Ok(line);
        }
        let name = first.info().name.clone();
        let reason = self.condition_of(&first).reason;
        // It may tell of addresses and settings.
        let reason = reason.filter(|_| asked.caller.is_admin());
        line.failures
            .push((name.clone(), unreachable(&name, reason)));
        match self.next_in_line(asked, &mut line).await {
            true => Ok(line),
            false => Err(line.error()),
        }
    }

    /// Makes the instance of a claimed row: with the one it says, or with the next that can.
    pub(super) async fn make_by_line(
        &self,
        asked: Asked<'_>,
        mut claim: Claim,
        mut spec: InstanceSpec,
        mut line: Line,
    ) -> ServiceResult<Sandbox> {
        loop {
            claim.check_held()?;
            let error = match line.fit.provider.create(&spec).await {
                Err(error) if is_movable(&error, &line) => error,
                made => {
                    let provider = line.fit.provider.clone();
                    return self
                        .finish_create(asked.caller, claim, &provider, made)
                        .await;
                }
            };
            let is_sure = super::finish::is_sure(&error);
            let from = line.fit.provider.info().name.clone();
            line.failures.push((from.clone(), error.into()));
            if !self.next_in_line(asked, &mut line).await {
                let error = line.error();
                self.give_up(asked.caller, claim, &error, is_sure).await;
                return Err(error);
            }
            self.move_row(asked.caller, &mut claim, &from, &line)
                .await?;
            spec.template.clone_from(&line.fit.template);
            let provider = &line.fit.provider.info().name;
            spec.is_restricted = self.is_restricted(asked.caller, provider, &spec.template);
            spec.limits.clone_from(&line.fit.limits);
        }
    }

    /// Steps on to the next who can be asked; false: there is none.
    async fn next_in_line(&self, asked: Asked<'_>, line: &mut Line) -> bool {
        while let Some(provider) = line.others.pop_front() {
            match self.fit(asked, line.template.as_deref(), &provider).await {
                Ok(fit) => {
                    line.fit = fit;
                    return true;
                }
                Err(error) => line.failures.push((provider.info().name.clone(), error)),
            }
        }
        false
    }

    /// Writes down that another provider is asked now.
    async fn move_row(
        &self,
        caller: &Caller,
        claim: &mut Claim,
        from: &str,
        line: &Line,
    ) -> ServiceResult<()> {
        let info = line.fit.provider.info();
        let why = line.failures.iter().find(|(name, _)| name == from);
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
            template: Some(line.fit.template.clone()),
            limits: Some(line.fit.limits.clone()),
            ..SandboxPatch::default()
        };
        // Should this server die now, those who look after the new place look after the row.
        let timer = TimerPlan::Set {
            due_ms: self.clock().now_ms() + millis(CLAIM_FOR),
        };
        claim.note(patch, vec![event], timer).await?;
        metrics::counter!("sandyard_creates_moved_total", "from" => from.to_owned(), "to" => info.name.clone())
            .increment(1);
        tracing::warn!(sandbox.id = %claim.row.id, from, to = info.name, "Another provider makes `{}`", claim.row.id);
        Ok(())
    }

    /// What a sandbox is to be with this provider.
    async fn fit(
        &self,
        asked: Asked<'_>,
        template: Option<&str>,
        provider: &Arc<dyn Provider>,
    ) -> ServiceResult<Fit> {
        let info = provider.info();
        let template = self.template_with(provider, template);
        let template = self
            .template_called(asked.caller, &info.location, asked.owner, &template)
            .await?;
        self.check_template(asked.caller, &info.location, &template)
            .await?;
        Ok(Fit {
            provider: provider.clone(),
            template,
            limits: super::row::limits(&asked.request.limits, info)?,
        })
    }

    /// What a template's name means with a provider. The operator's default is the default provider's.
    fn template_with(&self, provider: &Arc<dyn Provider>, template: Option<&str>) -> String {
        if let Some(name) = template.filter(|name| !is_default(name)) {
            return name.to_owned();
        }
        let info = provider.info();
        let is_default_provider = info.name == self.places().default().info().name;
        let set = self.settings().default_template.clone();
        set.filter(|name| is_default_provider && !is_default(name))
            .unwrap_or_else(|| info.default_template.clone())
    }
}

/// Says whether the next in line is asked after this. A first choice that refuses has the last word; one that was asked
/// instead of it has not.
fn is_movable(error: &ProviderError, line: &Line) -> bool {
    let is_first = line.failures.is_empty();
    let is_unable = matches!(
        error.kind,
        ProviderErrorKind::NoCapacity
            | ProviderErrorKind::Unavailable
            | ProviderErrorKind::TimedOut
    );
    match is_first {
        true => is_unable && !line.others.is_empty(),
        false => true,
    }
}

fn unreachable(name: &str, reason: Option<String>) -> ServiceError {
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    ServiceError::new(
        ErrorKind::Unavailable,
        format!("the provider `{name}` cannot be reached{reason}"),
    )
    .hint("GET /health tells when it is back")
}
