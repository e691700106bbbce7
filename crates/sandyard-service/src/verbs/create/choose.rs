//! Which provider makes a sandbox.
//!
//! Whoever asks may name one, in `provider` or in front of the template. Else it is where the sandbox's volumes are, where the
//! owner's snapshot of that name is, what the settings say of the template, or the default; for who may not use that one, the
//! first that is for everybody. Only what nobody and nothing bound
//! to a place may be made by another provider when its first choice cannot: see `fall_back`.

use std::sync::Arc;

use sandyard_provider::Provider;

use super::super::mounts::Found;
use super::super::volumes::check_can_mount;
use super::fall_back::Asked;
use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

/// What the settings call the template that is meant when none is named.
const BASE: &str = "base";

/// Where a sandbox is to be made.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) first: Arc<dyn Provider>,
    /// Who may make it instead, in this order.
    pub(super) others: Vec<Arc<dyn Provider>>,
    /// What it starts from, without a provider's name in front; none: the provider's default.
    pub(super) template: Option<String>,
}

impl Service {
    /// The provider that a template's text begins with, and what follows it: `docker/python:3.12`. None unless that is the
    /// name of a provider of this server.
    pub fn provider_in_template<'t>(&self, template: &'t str) -> Option<(&'t str, &'t str)> {
        let (name, rest) = template.split_once('/')?;
        self.places().named(name).map(|_| (name, rest))
    }

    /// The name of the provider that would make sandboxes of a template, by its name and the settings; none: it is not enabled.
    pub fn provider_for_template(&self, template: &str) -> Option<String> {
        if let Some((name, _)) = self.provider_in_template(template) {
            return Some(name.to_owned());
        }
        let provider = self.provider_of_template(template).ok()?;
        Some(provider.info().name.clone())
    }

    /// Decides where a sandbox of this owner is to be made.
    pub(super) async fn choose(&self, asked: Asked<'_>, found: &Found) -> ServiceResult<Choice> {
        let Asked {
            caller,
            owner,
            request,
        } = asked;
        let named = request.provider.as_deref().filter(|name| !name.is_empty());
        let text = request.template.as_deref().unwrap_or_default();
        let (named, text) = match named {
            // Whoever names a provider means the template as it is written.
            Some(name) => (Some(name), text),
            None => match self.provider_in_template(text) {
                Some((name, rest)) => (Some(name), rest),
                None => (None, text),
            },
        };
        let template = Some(text).filter(|text| !is_default(text));
        let named = named.map(|name| self.enabled(name)).transpose()?;
        if let Some(provider) = named {
            self.check_choice(caller, &provider.info().name)?;
        }
        let bound = match &found.location {
            Some(location) => Some(
                self.bound_by_volumes(owner, location, template, named)
                    .await?,
            ),
            None => self.bound_by_snapshot(owner, template, named).await?,
        };
        let bound = bound
            .map(|provider| self.check_place(caller, provider))
            .transpose()?;
        let (first, others) = match bound.or_else(|| named.cloned()) {
            Some(provider) => (provider, Vec::new()),
            None => {
                let template = template.unwrap_or(BASE);
                let first = self.provider_of_template(template)?;
                let first = match self.settings().template_providers.contains_key(template) {
                    true => self.check_place(caller, first)?,
                    false => self.for_caller(caller, first)?,
                };
                let mut others = self.instead_of(&first);
                others.retain(|provider| self.may_choose(caller, &provider.info().name));
                (first, others)
            }
        };
        Ok(Choice {
            first,
            others,
            template: template.map(str::to_owned),
        })
    }

    /// The provider of a name, or words on which there are.
    pub(crate) fn enabled(&self, name: &str) -> ServiceResult<&Arc<dyn Provider>> {
        self.places().named(name).ok_or_else(|| {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
            let names = self.places().names();
            ServiceError::invalid(
                "provider",
                format!("there is no provider `{shown}` here: there is {names}"),
            )
        })
    }

    /// Whose sandboxes of a template are when nobody says, and no snapshot does.
    pub(crate) fn provider_of_template(&self, template: &str) -> ServiceResult<Arc<dyn Provider>> {
        let Some(name) = self.settings().template_providers.get(template) else {
            return Ok(self.places().default().clone());
        };
        self.places().named(name).cloned().ok_or_else(|| {
            ServiceError::invalid(
                "template",
                format!(
                    "sandboxes of this template are the provider `{name}`'s, which is not enabled"
                ),
            )
            .hint("name a `provider`, or ask the operator to enable it")
        })
    }

    /// A sandbox is where its volumes are.
    async fn bound_by_volumes(
        &self,
        owner: &str,
        location: &str,
        template: Option<&str>,
        named: Option<&Arc<dyn Provider>>,
    ) -> ServiceResult<Arc<dyn Provider>> {
        let provider = self.places().provider(location).await?;
        if let Some(named) = named
            && named.info().name != provider.info().name
        {
            let here = &provider.info().name;
            return Err(contradiction("its volumes are", here, &named.info().name));
        }
        if let Some(template) = template {
            let places = self.store().snapshot_places(owner, template).await?;
            if !places.is_empty() && !places.iter().any(|place| place == location) {
                let message = format!("snapshot `{template}` is in another place than the volumes");
                return Err(ServiceError::invalid("template", message)
                    .hint("use another template, or other volumes"));
            }
        }
        check_can_mount(&provider)?;
        Ok(provider)
    }

    /// A sandbox of a snapshot is where that is.
    pub(in crate::verbs) async fn bound_by_snapshot(
        &self,
        owner: &str,
        template: Option<&str>,
        named: Option<&Arc<dyn Provider>>,
    ) -> ServiceResult<Option<Arc<dyn Provider>>> {
        let Some(template) = template else {
            return Ok(None);
        };
        let places = self.store().snapshot_places(owner, template).await?;
        if places.is_empty() {
            return Ok(None);
        }
        // Where there are several of one name, the nearest is meant.
        let wanted = named.unwrap_or_else(|| self.places().default());
        if places.contains(&wanted.info().location) {
            return Ok(Some(wanted.clone()));
        }
        let is_local = |place: &&String| self.places().local_for(place).is_some();
        let (local, remote): (Vec<_>, Vec<_>) = places.iter().partition(is_local);
        let mut other = None;
        for place in local.into_iter().chain(remote) {
            let provider = self.places().provider(place).await?;
            if named.is_none_or(|named| named.info().name == provider.info().name) {
                return Ok(Some(provider));
            }
            other.get_or_insert(provider);
        }
        let here = other.map_or_else(String::new, |provider| provider.info().name.clone());
        let what = format!("snapshot `{template}` is");
        Err(contradiction(&what, &here, &wanted.info().name))
    }

    /// Who is asked when the first choice cannot, in order.
    fn instead_of(&self, first: &Arc<dyn Provider>) -> Vec<Arc<dyn Provider>> {
        let mut others: Vec<Arc<dyn Provider>> = Vec::new();
        for name in &self.settings().fallback {
            let Some(provider) = self.places().named(name) else {
                continue;
            };
            let is_there = |known: &Arc<dyn Provider>| Arc::ptr_eq(known, provider);
            if !is_there(first) && !others.iter().any(is_there) {
                others.push(provider.clone());
            }
        }
        others
    }
}

/// Says whether a text means the provider's default template.
pub(super) fn is_default(template: &str) -> bool {
    matches!(template, "" | BASE | "default")
}

fn contradiction(what: &str, here: &str, named: &str) -> ServiceError {
    ServiceError::invalid(
        "provider",
        format!("{what} with the provider `{here}`, and not with `{named}`"),
    )
    .hint("leave `provider` out: the right one is found")
}
