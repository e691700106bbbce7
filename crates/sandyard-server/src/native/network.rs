//! `GET` and `PUT /sandboxes/{id}/network`, `POST /sandboxes/{id}/network/allow` and `/deny`: what a sandbox may reach.

use axum::Json;
use axum::extract::State;
use sandyard_service::Sandbox;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Body, SandboxName};
use crate::model::network::{self as policy, NetworkRequest, NetworkView, PolicyDefaults, Targets};

/// What a sandbox may reach from now on.
#[derive(Serialize, ToSchema)]
pub(crate) struct NetworkReply {
    sandbox_id: String,
    network: NetworkView,
    /// What of it the sandbox's provider cannot see to.
    lacks: Vec<String>,
}

/// Tells what a sandbox may reach. Wakes nothing.
#[utoipa::path(
    get, path = "/sandboxes/{id}/network", operation_id = "get_network", tag = "network",
    params(SandboxName),
    responses((status = 200, description = "What it may reach.", body = NetworkReply))
)]
pub(crate) async fn get_network(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<NetworkReply>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    reply(&app, sandbox)
}

/// Replaces what a sandbox may reach, all of it. Connections that are open and no longer allowed end.
#[utoipa::path(
    put, path = "/sandboxes/{id}/network", operation_id = "set_network", tag = "network",
    params(SandboxName), request_body = NetworkRequest,
    responses((status = 200, description = "It is so.", body = NetworkReply))
)]
pub(crate) async fn set_network(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Body(policy): Body<Value>,
) -> Result<Json<NetworkReply>, ApiError> {
    let service = app.service();
    // Whether there is such a sandbox comes first: nobody learns more by what else is wrong.
    service.inspect(&caller, &name.id).await?;
    let policy = policy::read("", policy, PolicyDefaults::from(&app))?;
    let sandbox = service.set_network(&caller, &name.id, policy).await?;
    reply(&app, sandbox)
}

/// Lets a sandbox reach these targets too.
#[utoipa::path(
    post, path = "/sandboxes/{id}/network/allow", operation_id = "allow_network", tag = "network",
    params(SandboxName), request_body = Targets,
    responses((status = 200, description = "It is so.", body = NetworkReply))
)]
pub(crate) async fn allow_network(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Body(targets): Body<Targets>,
) -> Result<Json<NetworkReply>, ApiError> {
    let service = app.service();
    service.inspect(&caller, &name.id).await?;
    let targets = targets.read()?;
    let sandbox = service.allow_network(&caller, &name.id, targets).await?;
    reply(&app, sandbox)
}

/// Lets a sandbox reach these targets no more.
#[utoipa::path(
    post, path = "/sandboxes/{id}/network/deny", operation_id = "deny_network", tag = "network",
    params(SandboxName), request_body = Targets,
    responses((status = 200, description = "It is so.", body = NetworkReply))
)]
pub(crate) async fn deny_network(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Body(targets): Body<Targets>,
) -> Result<Json<NetworkReply>, ApiError> {
    let service = app.service();
    service.inspect(&caller, &name.id).await?;
    let targets = targets.read()?;
    let sandbox = service.deny_network(&caller, &name.id, targets).await?;
    reply(&app, sandbox)
}

fn reply(app: &App, sandbox: Sandbox) -> Result<Json<NetworkReply>, ApiError> {
    let network = app.service().policy_of(&sandbox)?;
    Ok(Json(NetworkReply {
        sandbox_id: sandbox.id.to_string(),
        network: network.into(),
        lacks: sandbox.limitations,
    }))
}
