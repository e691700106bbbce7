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

/// A template that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Imported {
    success: bool,
    name: String,
    /// The provider that has it.
    provider: String,
    size_bytes: Option<u64>,
    created_ms: Option<i64>,
    note: Option<String>,
}

/// Makes a template from a tar archive.
///
/// The body is the archive of a root file system, compressed or not, of any length.
#[utoipa::path(put, path = "/templates/{name}", operation_id = "import_template", tag = "templates",
    params(("name" = String, Path, description = "The template"), TemplateQuery),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses(
        (status = 200, description = "Made", body = Imported)))]
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
    let made = app
        .service()
        .import_template(&caller, provider, &name, archive)
        .await?;
    let Template { provider, info, .. } = made;
    let made = info;
    Ok(Json(Imported {
        success: true,
        provider,
        name: made.name,
        size_bytes: made.size_bytes,
        created_ms: made.created_ms,
        note: made.note,
    }))
}
