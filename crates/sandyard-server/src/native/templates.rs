//! `GET /templates` and `DELETE /templates/{name}`.

use axum::Json;
use axum::extract::State;
use sandyard_core::ErrorKind;
use sandyard_provider::TemplateInfo;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Done;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathWord;
use crate::need::Who;
use crate::time::optional_iso;

/// What can be told of a template.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateView {
    name: String,
    created_at: Option<String>,
    size_bytes: Option<u64>,
    /// What else there is to say about it.
    note: Option<String>,
}

impl From<TemplateInfo> for TemplateView {
    fn from(template: TemplateInfo) -> Self {
        Self {
            name: template.name,
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
    let templates = app.service().templates(&caller).await?;
    let templates = templates.into_iter().map(TemplateView::from).collect();
    Ok(Json(TemplateList { templates }))
}

/// Removes a template. Sandboxes made from it live on.
#[utoipa::path(
    delete, path = "/templates/{name}", operation_id = "delete_template", tag = "templates",
    params(("name" = String, Path, description = "The template.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It is gone.", body = Done))
)]
pub(crate) async fn delete_template(
    State(app): State<App>,
    Who(caller): Who,
    PathWord(name): PathWord,
) -> Result<Json<Done>, ApiError> {
    let removed = app.service().remove_template(&caller, &name).await;
    removed.map_err(|mut error| {
        // The name is one; it is the template that cannot be removed.
        if error.kind == ErrorKind::Invalid {
            error.kind = ErrorKind::Conflict;
        }
        error
    })?;
    Ok(Json(Done::new(format!("Template {name} deleted"))))
}
