//! Gives the URL of a sandbox's port.

use sandyard_core::{Caller, SandboxId, Scope};

use crate::bounds::PortNumber;
use crate::links::Links;
use crate::prelude::*;

/// Request for the URL of a port.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ExposePort {
    /// Sandbox that the port belongs to.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// TCP port inside the sandbox.
    #[schema(schema_with = bounds::port_schema)]
    port: PortNumber,
}

/// Address of a port of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PortReply {
    /// Always `true`; a failed request has an error status instead.
    pub(crate) success: bool,
    /// Preview URL of the port. Unless the port is public, it requires the same credentials as this API.
    pub(crate) url: String,
    /// URL with an access token in it, valid for 24 hours for anyone who has it. Present only for credentials with the
    /// scope `use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signed_url: Option<String>,
    /// The same for a web browser: on a host of its own (`3000-ID.localhost`) if the request came from the server's machine,
    /// because applications with absolute paths, modules or storage do not work below `/p/`. Present with `signed_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) browser_url: Option<String>,
    /// TCP port inside the sandbox.
    pub(crate) port: u16,
    /// Whether anyone who knows the URL may open the port.
    pub(crate) public: bool,
    /// Summary of the result for people.
    pub(crate) message: String,
}

/// Wakes the sandbox and gives the URL of a port. Nothing needs to listen there yet.
pub(crate) async fn expose_port(call: &Call, request: ExposePort) -> ApiResult<PortReply> {
    let live = call.live(&request.sandbox_id).await?;
    let port = request.port.get();
    let id = &live.sandbox.id;
    Ok(PortReply {
        success: true,
        url: call.links.port(id, port),
        signed_url: signed_url(&call.caller, &call.links, id, port),
        browser_url: browser_url(&call.caller, &call.links, id, port),
        port,
        public: live.sandbox.public_ports.contains(&port),
        message: format!("Port {port} is reached at this URL"),
    })
}

/// Signed URL of a port. Only callers who may use the sandbox get one; the scope `read` is not enough.
pub(crate) fn signed_url(
    caller: &Caller,
    links: &Links,
    id: &SandboxId,
    port: u16,
) -> Option<String> {
    caller.has(Scope::Use).then(|| links.signed_port(id, port))
}

/// The same for a browser.
pub(crate) fn browser_url(
    caller: &Caller,
    links: &Links,
    id: &SandboxId,
    port: u16,
) -> Option<String> {
    caller
        .has(Scope::Use)
        .then(|| links.signed_browser_port(id, port))
}
