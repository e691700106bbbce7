//! What a create request means at one provider.

use std::sync::Arc;

use sandyard_core::{Caller, Limits, PartialLimits};
use sandyard_provider::{Provider, ProviderInfo};

use super::template_name::is_default;
use crate::error::{Result, ServiceError};
use crate::request::CreateRequest;
use crate::service::Service;

/// A create request and who makes it, independent of the provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreateContext<'r> {
    pub(super) caller: &'r Caller,
    /// The name of the user who will own the sandbox.
    pub(super) owner: &'r str,
    pub(super) request: &'r CreateRequest,
}

/// Provider, template and limits of a new sandbox.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) provider: Arc<dyn Provider>,
    /// The provider's name of the template.
    pub(super) template: String,
    pub(super) limits: Limits,
}

impl Service {
    /// Works out template and limits at a provider.
    pub(super) async fn resolve_placement(
        &self,
        context: CreateContext<'_>,
        template: Option<&str>,
        provider: &Arc<dyn Provider>,
    ) -> Result<Placement> {
        let info = provider.info();
        let template = self.template_with(provider, template);
        let template = self
            .template_called(context.caller, &info.location, context.owner, &template)
            .await?;
        self.check_template(context.caller, &info.location, &template)
            .await?;
        Ok(Placement {
            provider: provider.clone(),
            template,
            limits: limits(&context.request.limits, info)?,
        })
    }

    /// The template that a name means with a provider. The operator's default template applies to the default provider.
    fn template_with(&self, provider: &Arc<dyn Provider>, template: Option<&str>) -> String {
        if let Some(name) = template.filter(|name| !is_default(name)) {
            return name.to_owned();
        }
        let info = provider.info();
        let is_default_provider = info.name == self.registry().default().info().name;
        let set = self.settings().default_template.clone();
        set.filter(|name| is_default_provider && !is_default(name))
            .unwrap_or_else(|| info.default_template.clone())
    }
}

/// The limits of a sandbox: the requested ones, else the provider's defaults. Fails if they exceed the provider's maximum.
fn limits(requested: &PartialLimits, info: &ProviderInfo) -> Result<Limits> {
    let limits = requested.or(&info.default_limits);
    limits
        .check(&info.max_limits)
        .map_err(|error| ServiceError::invalid("limits", error.to_string()))?;
    Ok(limits)
}
