//! `POST /sandboxes/expose-port`; `POST` and `GET /sandboxes/{id}/ports/{port}`.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use sandyard_core::Caller;
use sandyard_service::Sandbox;

use crate::actions::expose_port::{self, ExposePort, PortReply, browser_url, signed_url};
use crate::links::Links;
use crate::prelude::*;

/// Get the URL of a port
///
/// Returns the preview URL of a TCP port in a sandbox. Every port has a URL, whether or not a program listens on it
/// yet; nothing is changed. Use `POST /sandboxes/{id}/ports/{port}` to make a port public.
#[utoipa::path(
    post, path = "/sandboxes/expose-port", tag = "ports", request_body = ExposePort,
    responses((status = 200, description = "URL of the port returned.", body = PortReply))
)]
pub(crate) async fn expose_port(call: Call, Body(request): Body<ExposePort>) -> Reply<PortReply> {
    expose_port::expose_port(&call, request).await.map(Json)
}

/// Sandbox and port named in the path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct PortName {
    /// Sandbox to act on: its ID, its alias, or the ID its provider gave it.
    #[param(min_length = 1, max_length = 128)]
    id: String,
    /// TCP port inside the sandbox, 1–65535.
    #[param(minimum = 1, maximum = 65535)]
    port: u16,
}

impl<S: Send + Sync> FromRequestParts<S> for PortName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let parameters = RawPathParams::from_request_parts(parts, state).await;
        let parameters = parameters.map_err(|_| ServiceError::no_sandbox("-"))?;
        let parameter = |name| {
            parameters
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, parameter)| parameter)
        };
        let id = parameter("id").unwrap_or_default().to_owned();
        sandbox_name(&id)?;
        match parameter("port").unwrap_or_default().parse() {
            Ok(port) if port > 0 => Ok(Self { id, port }),
            _ => Err(ServiceError::invalid("port", "`port` must be between 1 and 65535").into()),
        }
    }
}

/// Who may open a port.
#[derive(Deserialize, ToSchema)]
pub(crate) struct PortAccess {
    /// `true` to let anyone with the URL open the port, `false` to require credentials or a signed URL.
    public: bool,
}

/// Make a port public or private
///
/// Sets whether anyone may open a port through its preview URL. A private port (the default) can be opened with
/// credentials of the owner or with a signed URL. A sandbox may have at most 64 public ports.
#[utoipa::path(
    post, path = "/sandboxes/{id}/ports/{port}", tag = "ports", params(PortName), request_body = PortAccess,
    responses((status = 200, description = "Access to the port changed.", body = PortReply))
)]
pub(crate) async fn set_port_access(
    call: Call,
    name: PortName,
    Body(access): Body<PortAccess>,
) -> Reply<PortReply> {
    let service = call.service();
    if access.public && call.app.is_guarded_port(name.port) {
        let problem = "the ports of the tool server and of VS Code are never everybody's";
        return Err(ServiceError::invalid("public", problem)
            .hint("give others a signed link, which opens it for a day")
            .into());
    }
    let sandbox = service
        .set_port_public(&call.caller, &name.id, name.port, access.public)
        .await?;
    Ok(Json(reply(&call.caller, &call.links, &sandbox, name.port)))
}

/// Get the address of a port
///
/// Returns the preview URL of a port and who may open it. Does not wake the sandbox.
#[utoipa::path(
    get, path = "/sandboxes/{id}/ports/{port}", tag = "ports", params(PortName),
    responses((status = 200, description = "Address of the port returned.", body = PortReply))
)]
pub(crate) async fn get_port(call: Call, name: PortName) -> Reply<PortReply> {
    let sandbox = call.inspect(&name.id).await?;
    Ok(Json(reply(&call.caller, &call.links, &sandbox, name.port)))
}

fn reply(caller: &Caller, links: &Links, sandbox: &Sandbox, port: u16) -> PortReply {
    let public = sandbox.public_ports.contains(&port);
    let whom = if public { "anyone" } else { "its owner" };
    PortReply {
        success: true,
        url: links.port(&sandbox.id, port),
        signed_url: signed_url(caller, links, &sandbox.id, port),
        browser_url: browser_url(caller, links, &sandbox.id, port),
        port,
        public,
        message: format!("Port {port} may be opened by {whom}"),
    }
}
