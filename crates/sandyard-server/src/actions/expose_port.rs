//! Gives the URL of a sandbox's port.

use sandyard_core::{Caller, SandboxId, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::bounds::{self, PortNumber};
use crate::error::ApiError;
use crate::extract::sandbox_name;
use crate::links::Links;

/// A port to be reached from outside.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ExposePort {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Where a program of the sandbox's listens, or will.
    #[schema(schema_with = bounds::port_schema)]
    port: PortNumber,
}

/// Where a port is reached.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PortReply {
    /// Always true; failures are HTTP errors.
    pub(crate) success: bool,
    /// Its URL. Unless the port is public, credentials are asked for there as here.
    pub(crate) url: String,
    /// The same with a token in it, good for a day for whoever has it. Only for credentials with the scope `use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signed_url: Option<String>,
    pub(crate) port: u16,
    /// Whether anybody may open it.
    pub(crate) public: bool,
    /// What happened, for people.
    pub(crate) message: String,
}

/// Wakes the sandbox and gives the URL of a port. Nothing needs to listen there yet.
pub(crate) async fn expose_port(
    app: &App,
    caller: &Caller,
    links: &Links,
    request: ExposePort,
) -> Result<PortReply, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?;
    let live = app.service().live(caller, name).await?;
    let port = request.port.get();
    let id = &live.sandbox.id;
    Ok(PortReply {
        success: true,
        url: links.port(id, port),
        signed_url: signed_url(caller, links, id, port),
        port,
        public: live.sandbox.public_ports.contains(&port),
        message: format!("Port {port} is reached at this URL"),
    })
}

/// A link that opens a port, for those who may open it themselves: to look at a sandbox is not to use it.
pub(crate) fn signed_url(
    caller: &Caller,
    links: &Links,
    id: &SandboxId,
    port: u16,
) -> Option<String> {
    caller.has(Scope::Use).then(|| links.signed_port(id, port))
}
