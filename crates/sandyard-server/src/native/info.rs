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

/// Get a sandbox
///
/// Returns everything known about a sandbox, except secrets. Works after its deletion too, until its history expires
/// (`lifecycle.history_retention`, 30 days by default). Does not wake the sandbox.
#[utoipa::path(
    get, path = "/sandboxes/{id}/info", operation_id = "get_sandbox", tag = "sandboxes",
    params(SandboxName),
    responses((status = 200, description = "Sandbox returned.", body = SandboxInfo))
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

/// URLs of the programs that every sandbox can serve.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UrlsReply {
    /// URL of the tool server for MCP clients.
    mcp_url: String,
    /// URL of VS Code in the browser.
    vscode_url: String,
}

/// Get the URLs of a sandbox
///
/// Returns the URLs of the tool server and of VS Code in a sandbox. Does not wake the sandbox.
#[utoipa::path(
    get, path = "/sandboxes/{id}/urls", operation_id = "get_sandbox_urls", tag = "ports",
    params(SandboxName),
    responses((status = 200, description = "URLs returned.", body = UrlsReply))
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
