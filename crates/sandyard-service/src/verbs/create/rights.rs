//! What users may ask of providers who are not admins.

use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::{InstanceSpec, Provider};
use sandyard_store::model::Sandbox;

use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

impl Service {
    /// Says what an instance may be made with on behalf of this caller. A project's folder is the host's and has no owner, so
    /// that only admins get at one.
    pub(in crate::verbs) fn set_rights(
        &self,
        caller: &Caller,
        row: &Sandbox,
        spec: &mut InstanceSpec,
    ) {
        spec.project = row.project.clone().filter(|_| caller.is_admin());
        spec.is_restricted = self.is_restricted(caller, &row.provider, &spec.template);
    }

    /// Whether a caller may start from nothing but what this installation keeps.
    pub(in crate::verbs) fn is_restricted(
        &self,
        caller: &Caller,
        provider: &str,
        template: &str,
    ) -> bool {
        !caller.is_admin() && !self.is_for_users(provider, template)
    }

    /// Whether the operator lets everybody start from a template that is not this installation's: by a pattern, or because it is
    /// what sandboxes start from whose makers name nothing.
    pub(in crate::verbs) fn is_for_users(&self, provider: &str, template: &str) -> bool {
        let settings = self.settings();
        let mut patterns = settings.user_templates.iter();
        let is_default = || {
            settings.default_template.as_deref() == Some(template)
                && self.places().default().info().name == provider
        };
        patterns.any(|pattern| matches(pattern, template)) || is_default()
    }

    /// Refuses a provider that a template, a volume or a fork's original is bound to, if it is not for this caller.
    pub(in crate::verbs) fn check_place(
        &self,
        caller: &Caller,
        provider: Arc<dyn Provider>,
    ) -> ServiceResult<Arc<dyn Provider>> {
        if self.may_choose(caller, &provider.info().name) {
            return Ok(provider);
        }
        let name = &provider.info().name;
        let message = format!("this is with the provider `{name}`, which only admins may use");
        Err(ServiceError::new(ErrorKind::Forbidden, message).hint(
            "use another template, snapshot, volume or original, or ask the operator to allow this provider",
        ))
    }

    /// The provider that nobody named, or, where that is not for this caller, the first that is.
    pub(in crate::verbs) fn for_caller(
        &self,
        caller: &Caller,
        provider: Arc<dyn Provider>,
    ) -> ServiceResult<Arc<dyn Provider>> {
        if self.may_choose(caller, &provider.info().name) {
            return Ok(provider);
        }
        let mut allowed = self.settings().user_providers.iter().flatten();
        let other = allowed.find_map(|name| self.places().named(name)).cloned();
        other.ok_or_else(|| {
            let message = "no provider of this server is for users who are not admins";
            ServiceError::new(ErrorKind::Forbidden, message)
                .hint("have the operator add one to `sandbox.user_providers`")
        })
    }

    /// Whether a caller may have sandboxes with a provider.
    pub(super) fn may_choose(&self, caller: &Caller, provider: &str) -> bool {
        let allowed = self.settings().user_providers.as_ref();
        caller.is_admin() || allowed.is_none_or(|names| names.iter().any(|name| name == provider))
    }

    /// Refuses a provider that is not for everybody to choose.
    pub(super) fn check_choice(&self, caller: &Caller, provider: &str) -> ServiceResult<()> {
        if self.may_choose(caller, provider) {
            return Ok(());
        }
        let message = format!("only an admin may choose the provider `{provider}`");
        Err(ServiceError::invalid("provider", message).hint("leave `provider` out"))
    }
}

/// Whether a text is what a pattern says, in which `*` stands for anything.
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
    fn a_star_stands_for_anything() {
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
