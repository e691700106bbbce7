//! Archives that become templates.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use sandyard_service::Template;
use serde::Serialize;
use utoipa::ToSchema;

use super::content::read_body;
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{PathName, Query};
use crate::model::template::TemplateQuery;

/// Template that was imported.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Imported {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Name of the template.
    name: String,
    /// Provider that has the template.
    provider: String,
    /// Size of the template in bytes, if known.
    size_bytes: Option<u64>,
    /// Time at which the template was created, in milliseconds since 1970-01-01 UTC, if known.
    created_ms: Option<i64>,
    /// Additional remark of the provider, if any.
    note: Option<String>,
}

/// Import a template
///
/// Creates a template from a tar archive of a root file system, compressed or not and of any size. Requires the scope
/// `admin`.
#[utoipa::path(put, path = "/templates/{name}", operation_id = "import_template", tag = "templates",
    params(("name" = String, Path, description = "Name of the new template."), TemplateQuery),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses(
        (status = 200, description = "Template imported.", body = Imported)))]
pub(super) async fn import_template(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
    Query(query): Query<TemplateQuery>,
    body: Body,
) -> Result<Json<Imported>, ApiError> {
    let provider = query.provider.as_deref();
    bounds::provider(provider)?;
    let archive = read_body(&app, body).into_reader();
    let template = app
        .service()
        .import_template(&caller, provider, &name, archive)
        .await?;
    let Template { provider, info, .. } = template;
    Ok(Json(Imported {
        success: true,
        provider,
        name: info.name,
        size_bytes: info.size_bytes,
        created_ms: info.created_ms,
        note: info.note,
    }))
}
