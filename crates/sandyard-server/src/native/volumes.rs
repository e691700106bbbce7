//! `GET` and `POST /volumes`, `GET` and `DELETE /volumes/{name}`: storage that outlives sandboxes.

use sandyard_core::bounds::MAX_USER_ID;
use sandyard_service::Volume;

use crate::audit;
use crate::model::Done;
use crate::prelude::*;

/// Request to create a volume.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateVolume {
    /// Name of the volume: 1–128 letters, digits, `_`, `.` and `-`, unique among the owner's volumes.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
    )]
    name: String,
}

/// Query of a list of volumes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListVolumes {
    /// Owner of the volumes. Only an admin may name another user; for other callers the parameter is ignored. Default:
    /// the caller.
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f]+$"
    )]
    user_id: Option<String>,
}

/// Volume: storage that outlives sandboxes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VolumeView {
    /// ID of the volume.
    volume_id: String,
    /// Name of the volume, unique among its owner's.
    name: String,
    /// User who owns the volume.
    owner: String,
    /// Capacity of the volume in bytes.
    size_bytes: u64,
    /// Time at which the volume was created (RFC 3339).
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

/// Volumes of a user.
#[derive(Serialize, ToSchema)]
pub(crate) struct VolumeList {
    /// Volumes, sorted by name.
    volumes: Vec<VolumeView>,
}

/// List volumes
///
/// Returns the caller's volumes, sorted by name.
#[utoipa::path(
    get, path = "/volumes", tag = "volumes", params(ListVolumes),
    responses((status = 200, description = "Volumes returned.", body = VolumeList))
)]
pub(crate) async fn list_volumes(
    call: Call,
    Query(query): Query<ListVolumes>,
) -> Reply<VolumeList> {
    bounds::optional_text("user_id", query.user_id.as_deref(), 1, MAX_USER_ID)?;
    let service = call.service();
    let volumes = service
        .volumes(&call.caller, query.user_id.as_deref())
        .await?;
    let volumes = volumes.into_iter().map(VolumeView::from).collect();
    Ok(Json(VolumeList { volumes }))
}

/// Create a volume
///
/// Creates an empty volume. Mount it by naming it in `volumes` when you create a sandbox; several sandboxes may use it
/// at the same time.
#[utoipa::path(
    post, path = "/volumes", tag = "volumes", request_body = CreateVolume,
    responses((status = 200, description = "Volume created.", body = VolumeView))
)]
pub(crate) async fn create_volume(call: Call, Body(new): Body<CreateVolume>) -> Reply<VolumeView> {
    let service = call.service();
    let volume = service.create_volume(&call.caller, &new.name).await?;
    audit::note_target(&volume.id);
    Ok(Json(volume.into()))
}

/// Get a volume
///
/// Returns one volume of the caller.
#[utoipa::path(
    get, path = "/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name or ID of the volume.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Volume returned.", body = VolumeView))
)]
pub(crate) async fn get_volume(call: Call, PathName(name): PathName) -> Reply<VolumeView> {
    Ok(Json(
        call.service().volume(&call.caller, &name).await?.into(),
    ))
}

/// Delete a volume
///
/// Deletes a volume and all files in it. Fails with 409 while a sandbox uses the volume.
#[utoipa::path(
    delete, path = "/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name or ID of the volume.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Volume deleted.", body = Done))
)]
pub(crate) async fn delete_volume(call: Call, PathName(name): PathName) -> Reply<Done> {
    call.service().delete_volume(&call.caller, &name).await?;
    Ok(Json(Done::new(format!("Volume {name} deleted"))))
}
