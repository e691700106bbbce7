//! `GET /templates` and `DELETE /templates/{name}`.

use axum::Json;
use axum::extract::State;
use sandyard_core::ErrorKind;
use sandyard_service::Template;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::view::Done;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{PathWord, Query};
use crate::need::Who;
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

/// Lists what sandboxes can start from.
#[utoipa::path(
    get, path = "/templates", operation_id = "list_templates", tag = "templates",
    responses((status = 200, description = "They.", body = TemplateList))
)]
pub(crate) async fn list_templates(
    State(app): State<App>,
    Who(caller): Who,
) -> Result<Json<TemplateList>, ApiError> {
    let list = app.service().templates(&caller).await?;
    let warning = |(provider, reason)| TemplateWarning { provider, reason };
    Ok(Json(TemplateList {
        templates: list.templates.into_iter().map(TemplateView::from).collect(),
        warnings: list.silent.into_iter().map(warning).collect(),
    }))
}

/// Removes a template. Sandboxes made from it live on.
#[utoipa::path(
    delete, path = "/templates/{name}", operation_id = "delete_template", tag = "templates",
    params(("name" = String, Path, description = "The template.", min_length = 1, max_length = 128), TemplateQuery),
    responses((status = 200, description = "It is gone.", body = Done))
)]
pub(crate) async fn delete_template(
    State(app): State<App>,
    Who(caller): Who,
    PathWord(name): PathWord,
    Query(query): Query<TemplateQuery>,
) -> Result<Json<Done>, ApiError> {
    let provider = query.provider.as_deref();
    bounds::provider(provider)?;
    let removed = app.service().remove_template(&caller, provider, &name);
    removed.await.map_err(|mut error| {
        // The name is one; it is the template that cannot be removed.
        if error.kind == ErrorKind::Invalid && error.field.is_none() {
            error.kind = ErrorKind::Conflict;
        }
        error
    })?;
    Ok(Json(Done::new(format!("Template {name} deleted"))))
}
