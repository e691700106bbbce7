//! What users who are not admins may request.

use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::{InstanceSpec, Provider};
use sandyard_store::model::Sandbox;

use crate::error::{Result, ServiceError};
use crate::service::Service;

impl Service {
    /// Adds the caller's rights to a spec. A project's folder is on the host and has no owner, so only admins may use one.
    pub(in crate::verbs) fn set_rights(
        &self,
        caller: &Caller,
        row: &Sandbox,
        spec: &mut InstanceSpec,
    ) {
        spec.project = row.project.clone().filter(|_| caller.is_admin());
        spec.is_restricted = self.is_restricted(caller, &row.provider, &spec.template);
    }

    /// Says whether a caller may use only templates that this installation stores.
    pub(in crate::verbs) fn is_restricted(
        &self,
        caller: &Caller,
        provider: &str,
        template: &str,
    ) -> bool {
        !caller.is_admin() && !self.is_for_users(provider, template)
    }

    /// Says whether the operator lets everybody use a template that this installation does not store: it matches a pattern of the
    /// settings, or is the default template.
    pub(in crate::verbs) fn is_for_users(&self, provider: &str, template: &str) -> bool {
        let settings = self.settings();
        let mut patterns = settings.user_templates.iter();
        let is_default = || {
            settings.default_template.as_deref() == Some(template)
                && self.registry().default().info().name == provider
        };
        patterns.any(|pattern| matches(pattern, template)) || is_default()
    }

    /// Fails if a template, volume or fork is bound to a provider that the caller may not use.
    pub(in crate::verbs) fn check_bound_provider(
        &self,
        caller: &Caller,
        provider: Arc<dyn Provider>,
    ) -> Result<Arc<dyn Provider>> {
        if self.may_choose(caller, &provider.info().name) {
            return Ok(provider);
        }
        let name = &provider.info().name;
        let message = format!("this is bound to the provider `{name}`, which only admins may use");
        Err(ServiceError::new(ErrorKind::Forbidden, message).hint(
            "use another template, snapshot, volume or original, or ask the operator to allow this provider",
        ))
    }

    /// A provider that the request does not name; if the caller may not use it, the first one that the caller may use.
    pub(in crate::verbs) fn default_provider_for(
        &self,
        caller: &Caller,
        provider: Arc<dyn Provider>,
    ) -> Result<Arc<dyn Provider>> {
        if self.may_choose(caller, &provider.info().name) {
            return Ok(provider);
        }
        let mut allowed = self.settings().user_providers.iter().flatten();
        let other = allowed
            .find_map(|name| self.registry().by_name(name))
            .cloned();
        other.ok_or_else(|| {
            let message = "this server has no provider that users who are not admins may use";
            ServiceError::new(ErrorKind::Forbidden, message)
                .hint("ask the operator to add one to `sandbox.user_providers`")
        })
    }

    /// Says whether a caller may use a provider.
    pub(super) fn may_choose(&self, caller: &Caller, provider: &str) -> bool {
        let allowed = self.settings().user_providers.as_ref();
        caller.is_admin() || allowed.is_none_or(|names| names.iter().any(|name| name == provider))
    }

    /// Fails if a request names a provider that the caller may not use.
    pub(super) fn check_choice(&self, caller: &Caller, provider: &str) -> Result<()> {
        if self.may_choose(caller, provider) {
            return Ok(());
        }
        let message = format!("only an admin may choose the provider `{provider}`");
        Err(ServiceError::invalid("provider", message).hint("omit `provider`"))
    }
}

/// Says whether a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts = rest.split('*').collect::<Vec<_>>();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text) in [
            ("python:3.12", "python:3.12"),
            ("python:*", "python:3.12"),
            ("python:*", "python:"),
            ("*", "anything"),
            ("*/team/*:1", "registry/team/app:1"),
            ("a*b*b", "abb"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("python", "python:3.12"),
            ("python:*", "my/python:3.12"),
            ("*/team/*:1", "registry/team/app:12"),
            ("a*b*b", "ab"),
            ("ab*ba", "aba"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
