//! `GET /sandboxes/{id}/info` and `/sandboxes/{id}/urls`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::SandboxName;
use crate::links::Links;
use crate::model::sandbox::SandboxInfo;

/// Tells all there is to know about a sandbox, also after its deletion.
#[utoipa::path(
    get, path = "/sandboxes/{id}/info", operation_id = "get_sandbox", tag = "sandboxes",
    params(SandboxName),
    responses((status = 200, description = "All about it.", body = SandboxInfo))
)]
pub(crate) async fn get_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    name: SandboxName,
) -> Result<Json<SandboxInfo>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    let sandbox = app.service().with_template_label(&caller, sandbox).await?;
    Ok(Json(SandboxInfo::new(app.service(), &links, sandbox)))
}

/// URLs of a sandbox's own servers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UrlsReply {
    /// Where its tool server is.
    mcp_url: String,
    /// Where its VS Code is.
    vscode_url: String,
}

/// Gives the URLs of a sandbox's tool server and VS Code.
#[utoipa::path(
    get, path = "/sandboxes/{id}/urls", operation_id = "get_sandbox_urls", tag = "ports",
    params(SandboxName),
    responses((status = 200, description = "They.", body = UrlsReply))
)]
pub(crate) async fn get_sandbox_urls(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    name: SandboxName,
) -> Result<Json<UrlsReply>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    Ok(Json(UrlsReply {
        mcp_url: links.mcp(&sandbox.id),
        vscode_url: links.vscode(&sandbox.id),
    }))
}
