//! `GET /sandboxes/{id}` = `/sandboxes/{id}/info`, and `/sandboxes/{id}/urls`.

use crate::model::sandbox::SandboxInfo;
use crate::prelude::*;

/// Get a sandbox
///
/// Returns everything known about a sandbox, except secrets. Works after its deletion too, until its history expires
/// (`lifecycle.history_retention`, 30 days by default). Does not wake the sandbox.
#[utoipa::path(
    get, path = "/sandboxes/{id}", tag = "sandboxes", params(SandboxName),
    responses((status = 200, description = "Sandbox returned.", body = SandboxInfo))
)]
pub(crate) async fn get_sandbox(call: Call, name: SandboxName) -> Reply<SandboxInfo> {
    let sandbox = call.inspect(&name.id).await?;
    let service = call.service();
    let sandbox = service.with_template_label(&call.caller, sandbox).await?;
    Ok(Json(SandboxInfo::new(&call, sandbox)))
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
    get, path = "/sandboxes/{id}/urls", tag = "ports", params(SandboxName),
    responses((status = 200, description = "URLs returned.", body = UrlsReply))
)]
pub(crate) async fn get_sandbox_urls(call: Call, name: SandboxName) -> Reply<UrlsReply> {
    let sandbox = call.inspect(&name.id).await?;
    Ok(Json(UrlsReply {
        mcp_url: call.links.mcp(&sandbox.id),
        vscode_url: call.links.vscode(&sandbox.id),
    }))
}
