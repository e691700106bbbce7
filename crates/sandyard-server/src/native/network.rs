//! `GET` and `PUT /sandboxes/{id}/network`, `POST /sandboxes/{id}/network/allow` and `/deny`: egress policies.

use sandyard_service::Sandbox;
use serde_json::Value;

use crate::app::App;
use crate::model::network::{self as policy, NetworkRequest, NetworkView, PolicyDefaults, Targets};
use crate::prelude::*;

/// Egress policy of a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct NetworkReply {
    /// ID of the sandbox.
    sandbox_id: String,
    /// Egress policy in force.
    network: NetworkView,
    /// Parts of the policy that the sandbox's provider cannot enforce, one sentence each; usually empty.
    limitations: Vec<String>,
    /// Old name of `limitations`. Will be removed in the next version.
    #[serde(rename = "lacks")]
    #[schema(deprecated)]
    deprecated_limitations: Vec<String>,
}

/// Get the egress policy
///
/// Returns which hosts a sandbox may reach. Values of headers are masked. Does not wake the sandbox.
#[utoipa::path(
    get, path = "/sandboxes/{id}/network", tag = "network", params(SandboxName),
    responses((status = 200, description = "Egress policy returned.", body = NetworkReply))
)]
pub(crate) async fn get_network(call: Call, name: SandboxName) -> Reply<NetworkReply> {
    let sandbox = call.inspect(&name.id).await?;
    reply(&call.app, sandbox)
}

/// Replace the egress policy
///
/// Replaces the whole egress policy of a sandbox; what the request leaves out is reset to its default. Open connections
/// that the new policy does not allow are closed.
#[utoipa::path(
    put, path = "/sandboxes/{id}/network", tag = "network", params(SandboxName), request_body = NetworkRequest,
    responses((status = 200, description = "Egress policy replaced.", body = NetworkReply))
)]
pub(crate) async fn set_network(
    call: Call,
    name: SandboxName,
    Body(policy): Body<Value>,
) -> Reply<NetworkReply> {
    let service = call.service();
    // Checks that the caller may see the sandbox first, so that other errors reveal nothing.
    call.inspect(&name.id).await?;
    let policy = policy::parse("", policy, PolicyDefaults::from(&call.app))?;
    let sandbox = service.set_network(&call.caller, &name.id, policy).await?;
    reply(&call.app, sandbox)
}

/// Allow egress to hosts
///
/// Adds hosts to the list that a sandbox may reach, and removes them from the list of denied hosts.
#[utoipa::path(
    post, path = "/sandboxes/{id}/network/allow", tag = "network", params(SandboxName), request_body = Targets,
    responses((status = 200, description = "Hosts allowed.", body = NetworkReply))
)]
pub(crate) async fn allow_network(
    call: Call,
    name: SandboxName,
    Body(targets): Body<Targets>,
) -> Reply<NetworkReply> {
    let service = call.service();
    call.inspect(&name.id).await?;
    let targets = targets.read()?;
    let sandbox = service
        .allow_network(&call.caller, &name.id, targets)
        .await?;
    reply(&call.app, sandbox)
}

/// Deny egress to hosts
///
/// Adds hosts to the list that a sandbox may not reach, and removes them from the list of allowed hosts. Open
/// connections to them are closed. Fails with 422 if a wider entry of the list of allowed hosts still covers one of
/// them.
#[utoipa::path(
    post, path = "/sandboxes/{id}/network/deny", tag = "network", params(SandboxName), request_body = Targets,
    responses((status = 200, description = "Hosts denied.", body = NetworkReply))
)]
pub(crate) async fn deny_network(
    call: Call,
    name: SandboxName,
    Body(targets): Body<Targets>,
) -> Reply<NetworkReply> {
    let service = call.service();
    call.inspect(&name.id).await?;
    let targets = targets.read()?;
    let sandbox = service
        .deny_network(&call.caller, &name.id, targets)
        .await?;
    reply(&call.app, sandbox)
}

fn reply(app: &App, sandbox: Sandbox) -> Reply<NetworkReply> {
    let network = app.service().policy_of(&sandbox)?;
    Ok(Json(NetworkReply {
        sandbox_id: sandbox.id.to_string(),
        network: network.into(),
        limitations: sandbox.limitations.clone(),
        deprecated_limitations: sandbox.limitations,
    }))
}
