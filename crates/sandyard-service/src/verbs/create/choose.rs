//! Chooses the provider of a new sandbox.
//!
//! A request may name one, in `provider` or in front of the template. Else it is, in this order: the provider of the sandbox's volumes,
//! of the owner's snapshot with that name, the one that the settings have for the template, the default; for a caller who may not use
//! the default, the first provider that everybody may use. Only a sandbox that nothing binds to a provider may be created at another
//! one if the first choice fails: see `fallback`.

use std::sync::Arc;

use sandyard_provider::Provider;

use super::super::mounts::ResolvedMounts;
use super::super::volumes::check_can_mount;
use super::placement::CreateContext;
use super::template_name::{BASE, is_default};
use crate::error::{Result, ServiceError, printable};
use crate::service::Service;

/// The providers that may make a sandbox.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) first: Arc<dyn Provider>,
    /// The providers that are tried after it, in this order.
    pub(super) fallbacks: Vec<Arc<dyn Provider>>,
    /// The template, without a provider's name in front; none for the provider's default.
    pub(super) template: Option<String>,
}

impl Service {
    /// The provider that a template's name begins with, and the rest of the name: `docker/python:3.12`. None unless this server has that
    /// provider.
    pub fn provider_in_template<'t>(&self, template: &'t str) -> Option<(&'t str, &'t str)> {
        let (name, rest) = template.split_once('/')?;
        self.registry().by_name(name).map(|_| (name, rest))
    }

    /// The name of the provider that makes sandboxes of a template, by its name and the settings; none if that is not enabled.
    pub fn provider_for_template(&self, template: &str) -> Option<String> {
        if let Some((name, _)) = self.provider_in_template(template) {
            return Some(name.to_owned());
        }
        let provider = self.provider_of_template(template).ok()?;
        Some(provider.info().name.clone())
    }

    /// Chooses the provider of a new sandbox.
    pub(super) async fn choose(
        &self,
        context: CreateContext<'_>,
        mounts: &ResolvedMounts,
    ) -> Result<Choice> {
        let CreateContext {
            caller,
            owner,
            request,
        } = context;
        let requested = request.provider.as_deref().filter(|name| !name.is_empty());
        let text = request.template.as_deref().unwrap_or_default();
        let (requested, text) = match requested {
            // With `provider`, the template's name has no provider in front.
            Some(name) => (Some(name), text),
            None => match self.provider_in_template(text) {
                Some((name, rest)) => (Some(name), rest),
                None => (None, text),
            },
        };
        let template = Some(text).filter(|text| !is_default(text));
        let requested = requested
            .map(|name| self.enabled_provider(name))
            .transpose()?;
        if let Some(provider) = requested {
            self.check_choice(caller, &provider.info().name)?;
        }
        let bound = match &mounts.location {
            Some(location) => Some(
                self.bound_by_volumes(owner, location, template, requested)
                    .await?,
            ),
            None => self.bound_by_snapshot(owner, template, requested).await?,
        };
        let bound = bound
            .map(|provider| self.check_bound_provider(caller, provider))
            .transpose()?;
        let (first, fallbacks) = match bound.or_else(|| requested.cloned()) {
            Some(provider) => (provider, Vec::new()),
            None => {
                let template = template.unwrap_or(BASE);
                let first = self.provider_of_template(template)?;
                let first = match self.settings().template_providers.contains_key(template) {
                    true => self.check_bound_provider(caller, first)?,
                    false => self.default_provider_for(caller, first)?,
                };
                let mut fallbacks = self.fallbacks_for(&first);
                fallbacks.retain(|provider| self.may_choose(caller, &provider.info().name));
                (first, fallbacks)
            }
        };
        Ok(Choice {
            first,
            fallbacks,
            template: template.map(str::to_owned),
        })
    }

    /// This server's provider with a name.
    pub(crate) fn enabled_provider(&self, name: &str) -> Result<&Arc<dyn Provider>> {
        self.registry().by_name(name).ok_or_else(|| {
            let (name, names) = (printable(name), self.registry().names());
            ServiceError::invalid(
                "provider",
                format!("this server has no provider `{name}`; it has {names}"),
            )
        })
    }

    /// The provider that the settings have for a template, else the default.
    pub(crate) fn provider_of_template(&self, template: &str) -> Result<Arc<dyn Provider>> {
        let Some(name) = self.settings().template_providers.get(template) else {
            return Ok(self.registry().default().clone());
        };
        self.registry().by_name(name).cloned().ok_or_else(|| {
            ServiceError::invalid(
                "template",
                format!("this template is bound to the provider `{name}`, which is not enabled"),
            )
            .hint("name a `provider`, or ask the operator to enable it")
        })
    }

    /// The provider of the sandbox's volumes.
    async fn bound_by_volumes(
        &self,
        owner: &str,
        location: &str,
        template: Option<&str>,
        requested: Option<&Arc<dyn Provider>>,
    ) -> Result<Arc<dyn Provider>> {
        let provider = self.registry().provider(location).await?;
        if let Some(requested) = requested
            && requested.info().name != provider.info().name
        {
            let actual = &provider.info().name;
            return Err(contradiction(
                "its volumes are",
                actual,
                &requested.info().name,
            ));
        }
        if let Some(template) = template {
            let locations = self.store().snapshot_locations(owner, template).await?;
            if !locations.is_empty() && !locations.iter().any(|candidate| candidate == location) {
                let message =
                    format!("snapshot `{template}` is at another location than the volumes");
                return Err(ServiceError::invalid("template", message)
                    .hint("use another template, or other volumes"));
            }
        }
        check_can_mount(&provider)?;
        Ok(provider)
    }

    /// The provider of the owner's snapshot with a name; none if there is no such snapshot.
    pub(in crate::verbs) async fn bound_by_snapshot(
        &self,
        owner: &str,
        template: Option<&str>,
        requested: Option<&Arc<dyn Provider>>,
    ) -> Result<Option<Arc<dyn Provider>>> {
        let Some(template) = template else {
            return Ok(None);
        };
        let locations = self.store().snapshot_locations(owner, template).await?;
        if locations.is_empty() {
            return Ok(None);
        }
        // Of several snapshots with one name, the nearest one is used.
        let preferred = requested.unwrap_or_else(|| self.registry().default());
        if locations.contains(&preferred.info().location) {
            return Ok(Some(preferred.clone()));
        }
        let is_local = |location: &&String| self.registry().local_for(location).is_some();
        let (local, remote): (Vec<_>, Vec<_>) = locations.iter().partition(is_local);
        let mut other = None;
        for location in local.into_iter().chain(remote) {
            let provider = self.registry().provider(location).await?;
            if requested.is_none_or(|requested| requested.info().name == provider.info().name) {
                return Ok(Some(provider));
            }
            other.get_or_insert(provider);
        }
        let actual = other.map_or_else(String::new, |provider| provider.info().name.clone());
        let what = format!("snapshot `{template}` is");
        Err(contradiction(&what, &actual, &preferred.info().name))
    }

    /// The providers that are tried after the first choice, in order.
    fn fallbacks_for(&self, first: &Arc<dyn Provider>) -> Vec<Arc<dyn Provider>> {
        let mut fallbacks: Vec<Arc<dyn Provider>> = Vec::new();
        for name in &self.settings().fallback {
            let Some(provider) = self.registry().by_name(name) else {
                continue;
            };
            let is_same = |candidate: &Arc<dyn Provider>| Arc::ptr_eq(candidate, provider);
            if !is_same(first) && !fallbacks.iter().any(is_same) {
                fallbacks.push(provider.clone());
            }
        }
        fallbacks
    }
}

fn contradiction(what: &str, actual: &str, requested: &str) -> ServiceError {
    ServiceError::invalid(
        "provider",
        format!("{what} with the provider `{actual}`, not with `{requested}`"),
    )
    .hint("omit `provider`: the server finds the right one")
}
