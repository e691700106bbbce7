//! Templates as responses show them.

use sandyard_service::Template;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::time::optional_iso;

/// What can be told of a template.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateView {
    /// Name to create sandboxes from.
    name: String,
    /// The provider's own name, random for snapshots of users. Accepted wherever a name is.
    id: String,
    /// Owner of the snapshot; null for templates that are for everybody.
    owner: Option<String>,
    /// The provider that has it.
    provider: String,
    created_at: Option<String>,
    size_bytes: Option<u64>,
    /// What else there is to say about it.
    note: Option<String>,
}

impl From<Template> for TemplateView {
    fn from(template: Template) -> Self {
        let Template {
            provider,
            info: template,
            owner,
            label,
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

/// What sandboxes can start from.
#[derive(Serialize, ToSchema)]
pub(crate) struct TemplateList {
    templates: Vec<TemplateView>,
    /// Providers whose templates are not listed, since they could not be asked.
    warnings: Vec<TemplateWarning>,
}

/// A provider that could not be asked.
#[derive(Serialize, ToSchema)]
pub(crate) struct TemplateWarning {
    /// Its name.
    provider: String,
    /// Why.
    reason: String,
}

/// Which provider's.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplateQuery {
    /// The provider that has the template, or shall have it; if it is left out, the default.
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
