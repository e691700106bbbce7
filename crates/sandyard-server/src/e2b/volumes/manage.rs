//! `/volumes`: list, create, get, delete.

use sandyard_core::Scope;
use sandyard_service::Volume;

use crate::audit;
use crate::prelude::*;

/// Request to create a volume.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct E2bNewVolume {
    /// Name of the volume: 1–128 letters, digits, `_`, `.` and `-`, unique among the owner's volumes.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
    )]
    name: String,
}

/// Volume: storage that outlives sandboxes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct E2bVolume {
    /// ID of the volume.
    #[serde(rename = "volumeID")]
    volume_id: String,
    /// Name of the volume.
    name: String,
}

/// Volume with the token for its contents.
#[derive(Serialize, ToSchema)]
pub(super) struct E2bVolumeAndToken {
    /// ID of the volume.
    #[serde(rename = "volumeID")]
    volume_id: String,
    /// Name of the volume.
    name: String,
    /// Token for the contents of the volume. Absent for callers without the scope `use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<String>,
    /// Domain of the contents: they are served at `https://api.` followed by this. Absent if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    domain: Option<String>,
}

impl From<Volume> for E2bVolume {
    fn from(volume: Volume) -> Self {
        Self {
            volume_id: volume.id,
            name: volume.name,
        }
    }
}

impl E2bVolumeAndToken {
    fn new(call: &Call, volume: Volume) -> Self {
        let settings = call.app.settings();
        Self {
            volume_id: volume.id,
            name: volume.name,
            token: call.caller.has(Scope::Use).then_some(volume.token),
            domain: settings
                .is_e2b_domain_enough
                .then(|| settings.e2b_domain.clone()),
        }
    }
}

/// List volumes for E2B clients
///
/// Returns the caller's volumes, sorted by name.
#[utoipa::path(
    get, path = "/e2b/volumes", tag = "e2b",
    responses((status = 200, description = "Volumes returned.", body = [E2bVolume]))
)]
pub(super) async fn e2b_list_volumes(call: Call) -> Reply<Vec<E2bVolume>> {
    let volumes = call.service().volumes(&call.caller, None).await?;
    Ok(Json(volumes.into_iter().map(Into::into).collect()))
}

/// Create a volume for E2B clients
///
/// Creates an empty volume and returns it with the token for its contents.
#[utoipa::path(
    post, path = "/e2b/volumes", tag = "e2b", request_body = E2bNewVolume,
    responses((status = 201, description = "Volume created.", body = E2bVolumeAndToken))
)]
pub(super) async fn e2b_create_volume(
    call: Call,
    Body(new): Body<E2bNewVolume>,
) -> ApiResult<(StatusCode, Json<E2bVolumeAndToken>)> {
    let service = call.service();
    let volume = service.create_volume(&call.caller, &new.name).await?;
    audit::note_target(&volume.id);
    Ok((
        StatusCode::CREATED,
        Json(E2bVolumeAndToken::new(&call, volume)),
    ))
}

/// Get a volume for E2B clients
///
/// Returns one volume with the token for its contents.
#[utoipa::path(
    get, path = "/e2b/volumes/{name}", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Volume returned.", body = E2bVolumeAndToken))
)]
pub(super) async fn e2b_get_volume(
    call: Call,
    PathName(name): PathName,
) -> Reply<E2bVolumeAndToken> {
    let volume = call.service().volume(&call.caller, &name).await?;
    Ok(Json(E2bVolumeAndToken::new(&call, volume)))
}

/// Delete a volume for E2B clients
///
/// Deletes a volume and all files in it. Fails with 409 while a sandbox uses the volume.
#[utoipa::path(
    delete, path = "/e2b/volumes/{name}", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128)),
    responses((status = 204, description = "Volume deleted."))
)]
pub(super) async fn e2b_delete_volume(
    call: Call,
    PathName(name): PathName,
) -> ApiResult<StatusCode> {
    call.service().delete_volume(&call.caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
