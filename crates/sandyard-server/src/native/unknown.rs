//! For whoever runs the server: `GET /instances/unknown`, `DELETE /instances/unknown/{name}`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::model::Done;
use crate::time::iso;

/// An instance of this installation that the database knows nothing of.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnknownInstanceView {
    /// Its provider's name for it.
    id: String,
    /// The provider it is with.
    provider: String,
    location: String,
    /// The sandbox it was made for, as it says itself.
    sandbox_id: Option<String>,
    /// `running`, `paused` or `stopped`, as its provider says.
    state: String,
    template: String,
    created_at: String,
}

/// Instances of this installation that the database knows nothing of.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnknownInstanceList {
    instances: Vec<UnknownInstanceView>,
    /// Places that did not say what they have.
    unreachable: Vec<String>,
}

/// Lists instances of this installation that the database knows nothing of.
///
/// There are some after an older database was restored, or when another server runs as the same installation. They are left alone.
#[utoipa::path(
    get, path = "/instances/unknown", operation_id = "list_unknown_instances", tag = "operations",
    responses((status = 200, description = "They.", body = UnknownInstanceList))
)]
pub(crate) async fn list_unknown_instances(
    State(app): State<App>,
) -> Result<Json<UnknownInstanceList>, ApiError> {
    let all = app.service().unknown_instances().await?;
    let view = |one: sandyard_service::UnknownInstance| UnknownInstanceView {
        id: one.instance.id,
        provider: one.provider,
        location: one.location,
        sandbox_id: one.instance.sandbox_id.map(|id| id.to_string()),
        state: format!("{:?}", one.instance.state).to_lowercase(),
        template: one.instance.template,
        created_at: iso(one.instance.created_ms),
    };
    Ok(Json(UnknownInstanceList {
        instances: all.instances.into_iter().map(view).collect(),
        unreachable: all.unreachable,
    }))
}

/// Removes such an instance and all it holds. Others cannot be removed so.
#[utoipa::path(
    delete, path = "/instances/unknown/{name}", operation_id = "delete_unknown_instance", tag = "operations",
    params(("name" = String, Path, description = "Its provider's name for it.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It is gone.", body = Done))
)]
pub(crate) async fn delete_unknown_instance(
    State(app): State<App>,
    PathName(id): PathName,
) -> Result<Json<Done>, ApiError> {
    app.service().delete_unknown_instance(&id).await?;
    Ok(Json(Done::new("The instance is gone")))
}
