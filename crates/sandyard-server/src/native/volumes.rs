//! `GET` and `POST /volumes`, `GET` and `DELETE /volumes/{name}`: folders that outlive sandboxes.

use axum::Json;
use axum::extract::State;
use sandyard_service::Volume;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::audit;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, PathName, Query};
use crate::model::Done;
use crate::time::iso;

/// A volume to be made.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateVolume {
    /// Its name, unique among its owner's.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
    )]
    name: String,
}

/// Whose volumes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListVolumes {
    /// Whose; only an admin may name somebody else, an ordinary user's word is not looked at.
    #[param(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f]+$"
    )]
    user_id: Option<String>,
}

/// A volume.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VolumeView {
    /// Its id.
    volume_id: String,
    name: String,
    /// Whose it is.
    owner: String,
    /// How many bytes fit into it.
    size_bytes: u64,
    created_at: String,
}

impl From<Volume> for VolumeView {
    fn from(volume: Volume) -> Self {
        Self {
            volume_id: volume.id,
            name: volume.name,
            owner: volume.owner,
            size_bytes: u64::try_from(volume.size_bytes).unwrap_or_default(),
            created_at: iso(volume.created_ms),
        }
    }
}

/// Volumes.
#[derive(Serialize, ToSchema)]
pub(crate) struct VolumeList {
    /// By name.
    volumes: Vec<VolumeView>,
}

/// Lists the caller's volumes.
#[utoipa::path(
    get, path = "/volumes", operation_id = "list_volumes", tag = "volumes", params(ListVolumes),
    responses((status = 200, description = "They.", body = VolumeList))
)]
pub(crate) async fn list_volumes(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<ListVolumes>,
) -> Result<Json<VolumeList>, ApiError> {
    bounds::optional_text("user_id", query.user_id.as_deref(), 1, 255)?;
    let volumes = app
        .service()
        .volumes(&caller, query.user_id.as_deref())
        .await?;
    let volumes = volumes.into_iter().map(VolumeView::from).collect();
    Ok(Json(VolumeList { volumes }))
}

/// Makes an empty volume. Sandboxes can have it from their creation on, several at once.
#[utoipa::path(
    post, path = "/volumes", operation_id = "create_volume", tag = "volumes", request_body = CreateVolume,
    responses((status = 200, description = "It is there.", body = VolumeView))
)]
pub(crate) async fn create_volume(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Body(new): Body<CreateVolume>,
) -> Result<Json<VolumeView>, ApiError> {
    let volume = app.service().create_volume(&caller, &new.name).await?;
    audit::note_target(&volume.id);
    Ok(Json(volume.into()))
}

/// Shows a volume.
#[utoipa::path(
    get, path = "/volumes/{name}", operation_id = "get_volume", tag = "volumes",
    params(("name" = String, Path, description = "Its name or id.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It.", body = VolumeView))
)]
pub(crate) async fn get_volume(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
) -> Result<Json<VolumeView>, ApiError> {
    Ok(Json(app.service().volume(&caller, &name).await?.into()))
}

/// Removes a volume and all that is in it. Refused while a sandbox has it.
#[utoipa::path(
    delete, path = "/volumes/{name}", operation_id = "delete_volume", tag = "volumes",
    params(("name" = String, Path, description = "Its name or id.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It is gone.", body = Done))
)]
pub(crate) async fn delete_volume(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
) -> Result<Json<Done>, ApiError> {
    app.service().delete_volume(&caller, &name).await?;
    Ok(Json(Done::new(format!("Volume {name} deleted"))))
}
