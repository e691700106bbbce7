//! `GET /templates` and `DELETE /templates/{name}`.

use axum::Json;
use axum::extract::State;
use sandyard_core::ErrorKind;

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{PathName, Query};
use crate::model::Done;
use crate::model::template::{TemplateList, TemplateQuery};

/// List templates
///
/// Returns the templates and snapshots that the caller can create sandboxes from.
#[utoipa::path(
    get, path = "/templates", operation_id = "list_templates", tag = "templates",
    responses((status = 200, description = "Templates returned.", body = TemplateList))
)]
pub(crate) async fn list_templates(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
) -> Result<Json<TemplateList>, ApiError> {
    Ok(Json(app.service().templates(&caller).await?.into()))
}

/// Delete a template
///
/// Deletes a template or snapshot. Sandboxes that were created from it keep working.
#[utoipa::path(
    delete, path = "/templates/{name}", operation_id = "delete_template", tag = "templates",
    params(("name" = String, Path, description = "Name or ID of the template.", min_length = 1, max_length = 128), TemplateQuery),
    responses((status = 200, description = "Template deleted.", body = Done))
)]
pub(crate) async fn delete_template(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
    Query(query): Query<TemplateQuery>,
) -> Result<Json<Done>, ApiError> {
    let provider = query.provider.as_deref();
    bounds::provider(provider)?;
    let removed = app.service().remove_template(&caller, provider, &name);
    removed.await.map_err(|mut error| {
        // The name is valid, but the template cannot be deleted.
        if error.kind == ErrorKind::Invalid && error.field.is_none() {
            error.kind = ErrorKind::Conflict;
        }
        error
    })?;
    Ok(Json(Done::new(format!("Template {name} deleted"))))
}
