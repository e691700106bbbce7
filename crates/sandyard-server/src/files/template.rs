//! Archives that become templates.

use axum::body::Body;
use sandyard_service::Template;

use super::content::read_body;
use crate::model::template::TemplateQuery;
use crate::prelude::*;

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
/// Creates a template from a tar archive, compressed or not and of any size. The archive has a root file system, or an image as
/// `docker save` and OCI tools write them; images share the layers they have in common, and commands get the image's environment
/// and start in its directory. Requires the scope `admin`.
#[utoipa::path(
    put, path = "/templates/{name}", tag = "templates",
    params(("name" = String, Path, description = "Name of the new template."), TemplateQuery),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, description = "Template imported.", body = Imported))
)]
pub(super) async fn import_template(
    call: Call,
    PathName(name): PathName,
    Query(query): Query<TemplateQuery>,
    body: Body,
) -> Reply<Imported> {
    let provider = query.provider.as_deref();
    bounds::provider(provider)?;
    let archive = read_body(&call.app, body).into_reader();
    let service = call.service();
    let template = service
        .import_template(&call.caller, provider, &name, archive)
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
