//! `GET /templates` and `DELETE /templates/{name}`.

use crate::model::Done;
use crate::model::template::{TemplateList, TemplateQuery};
use crate::prelude::*;

/// List templates
///
/// Returns the templates and snapshots that the caller can create sandboxes from.
#[utoipa::path(
    get, path = "/templates", tag = "templates",
    responses((status = 200, description = "Templates returned.", body = TemplateList))
)]
pub(crate) async fn list_templates(call: Call) -> Reply<TemplateList> {
    Ok(Json(call.service().templates(&call.caller).await?.into()))
}

/// Delete a template
///
/// Deletes a template or snapshot. Sandboxes that were created from it keep working.
#[utoipa::path(
    delete, path = "/templates/{name}", tag = "templates",
    params(("name" = String, Path, description = "Name or ID of the template.", min_length = 1, max_length = 128), TemplateQuery),
    responses((status = 200, description = "Template deleted.", body = Done))
)]
pub(crate) async fn delete_template(
    call: Call,
    PathName(name): PathName,
    Query(query): Query<TemplateQuery>,
) -> Reply<Done> {
    let provider = query.provider.as_deref();
    bounds::provider(provider)?;
    let service = call.service();
    let removed = service.remove_template(&call.caller, provider, &name);
    removed.await.map_err(|mut error| {
        // The name is valid, but the template cannot be deleted.
        if error.kind == ErrorKind::Invalid && error.field.is_none() {
            error.kind = ErrorKind::Conflict;
        }
        error
    })?;
    Ok(Json(Done::new(format!("Template {name} deleted"))))
}
