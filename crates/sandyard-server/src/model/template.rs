//! Templates as responses show them.

use sandyard_service::Template;

use crate::prelude::*;

/// Template: what sandboxes start from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateView {
    /// Name to create sandboxes from.
    name: String,
    /// Name that the provider uses; random for snapshots of users. Accepted wherever a name is.
    id: String,
    /// User who owns the snapshot. Null for templates that everyone may use.
    owner: Option<String>,
    /// Provider that has the template.
    provider: String,
    /// Time at which the template was created (RFC 3339), if known.
    created_at: Option<String>,
    /// Size of the template in bytes, if known.
    size_bytes: Option<u64>,
    /// Additional remark of the provider, if any.
    note: Option<String>,
}

impl From<Template> for TemplateView {
    fn from(template: Template) -> Self {
        let Template {
            provider,
            info: template,
            owner,
            label,
            ..
        } = template;
        Self {
            provider,
            id: template.name.clone(),
            name: label.unwrap_or(template.name),
            owner,
            created_at: optional_iso(template.created_ms),
            size_bytes: template.size_bytes,
            note: template.note,
        }
    }
}

/// Templates that the caller can create sandboxes from.
#[derive(Serialize, ToSchema)]
pub(crate) struct TemplateList {
    /// Templates of all providers that answered.
    templates: Vec<TemplateView>,
    /// Providers whose templates are missing because they did not answer.
    warnings: Vec<TemplateWarning>,
}

/// Provider that did not answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct TemplateWarning {
    /// Name of the provider.
    provider: String,
    /// Reason why its templates are missing.
    reason: String,
}

/// Query that names a provider.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplateQuery {
    /// Provider that gets the template. Default: the default provider.
    #[param(min_length = 1, max_length = 64)]
    pub(crate) provider: Option<String>,
}

impl From<sandyard_service::TemplateList> for TemplateList {
    fn from(list: sandyard_service::TemplateList) -> Self {
        let warning = |(provider, reason)| TemplateWarning { provider, reason };
        Self {
            templates: list.templates.into_iter().map(TemplateView::from).collect(),
            warnings: list.unavailable.into_iter().map(warning).collect(),
        }
    }
}
