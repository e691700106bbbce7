//! Routes for operators: `GET /instances/unknown`, `DELETE /instances/unknown/{name}`.

use axum::extract::State;

use crate::app::App;
use crate::model::Done;
use crate::prelude::*;

/// Instance that the database does not contain.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnknownInstanceView {
    /// ID that the provider gave the instance.
    id: String,
    /// Provider that runs the instance.
    provider: String,
    /// Location of the instance.
    location: String,
    /// ID of the sandbox that the instance was created for, according to its label.
    sandbox_id: Option<String>,
    /// State according to the provider: `running`, `paused` or `stopped`.
    state: String,
    /// Template that the instance was created from.
    template: String,
    /// Time at which the instance was created (RFC 3339).
    created_at: String,
}

/// Instances of this installation that its database does not contain.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnknownInstanceList {
    /// Orphaned instances.
    instances: Vec<UnknownInstanceView>,
    /// Locations that did not answer, so that their instances are missing.
    unreachable: Vec<String>,
}

/// List orphaned instances
///
/// Returns the instances that belong to this installation but are not in its database. They appear when an older
/// database was restored, or when another server runs as the same installation. The server leaves them alone. Requires
/// the scope `admin`.
#[utoipa::path(
    get, path = "/instances/unknown", tag = "operations",
    responses((status = 200, description = "Orphaned instances returned.", body = UnknownInstanceList))
)]
pub(crate) async fn list_unknown_instances(State(app): State<App>) -> Reply<UnknownInstanceList> {
    let all = app.service().unknown_instances().await?;
    let view = |unknown: sandyard_service::UnknownInstance| UnknownInstanceView {
        id: unknown.instance.id,
        provider: unknown.provider,
        location: unknown.location,
        sandbox_id: unknown.instance.sandbox_id.map(|id| id.to_string()),
        state: format!("{:?}", unknown.instance.state).to_lowercase(),
        template: unknown.instance.template,
        created_at: iso(unknown.instance.created_ms),
    };
    Ok(Json(UnknownInstanceList {
        instances: all.instances.into_iter().map(view).collect(),
        unreachable: all.unreachable,
    }))
}

/// Delete an orphaned instance
///
/// Deletes an instance that is not in the database, with all its files. Fails with 404 for an instance that belongs to
/// a sandbox. Requires the scope `admin`.
#[utoipa::path(
    delete, path = "/instances/unknown/{name}", tag = "operations",
    params(("name" = String, Path, description = "ID that the provider gave the instance.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Orphaned instance deleted.", body = Done))
)]
pub(crate) async fn delete_unknown_instance(call: Call, PathName(id): PathName) -> Reply<Done> {
    call.service().delete_unknown_instance(&id).await?;
    Ok(Json(Done::new("Instance deleted")))
}
