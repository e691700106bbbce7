//! `/volumecontent/{id}/path`: attributes and removal of files and folders.

use super::entry::E2bVolumeEntry;
use super::volume_path::{Attributes, VolumePath};
use crate::prelude::*;

/// Path inside a volume.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PathQuery {
    /// Path inside the volume, from its root.
    #[param(max_length = 4096, pattern = r"^[^\u0000]*$")]
    pub(super) path: String,
}

/// Changes to a path of a volume. A field that is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct E2bVolumeChange {
    /// New user ID of the owner, 0–65535.
    #[schema(maximum = 65_535)]
    uid: Option<u32>,
    /// New group ID, 0–65535.
    #[schema(maximum = 65_535)]
    gid: Option<u32>,
    /// New permission bits as a decimal number, for example 420 for `0644`, 0–4095.
    #[schema(maximum = 4095)]
    mode: Option<u32>,
}

/// Get information about a path of a volume
///
/// Returns type, size, permissions, owner and times of a file or directory of a volume.
#[utoipa::path(
    get, path = "/e2b/volumecontent/{name}/path", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), PathQuery),
    responses((status = 200, description = "Information about the path returned.", body = E2bVolumeEntry))
)]
pub(super) async fn e2b_get_volume_path(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
) -> Reply<E2bVolumeEntry> {
    let target = VolumePath::open(&call, &volume, &query.path).await?;
    Ok(Json(target.stat().await?))
}

/// Change owner or permissions of a path
///
/// Changes the owner, group or permission bits of a file or directory of a volume. Fields that are left out stay as
/// they are.
#[utoipa::path(
    patch, path = "/e2b/volumecontent/{name}/path", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), PathQuery),
    request_body = E2bVolumeChange,
    responses((status = 200, description = "Owner or permissions changed.", body = E2bVolumeEntry))
)]
pub(super) async fn e2b_change_volume_path(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
    Body(change): Body<E2bVolumeChange>,
) -> Reply<E2bVolumeEntry> {
    let attributes = Attributes {
        uid: change.uid,
        gid: change.gid,
        mode: change.mode,
    }
    .check()?;
    let target = VolumePath::open(&call, &volume, &query.path).await?;
    target.change(attributes).await?;
    Ok(Json(target.stat().await?))
}

/// Delete a path of a volume
///
/// Deletes a file, or a directory with everything in it.
#[utoipa::path(
    delete, path = "/e2b/volumecontent/{name}/path", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), PathQuery),
    responses((status = 204, description = "Path deleted."))
)]
pub(super) async fn e2b_remove_volume_path(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
) -> ApiResult<StatusCode> {
    let target = VolumePath::open(&call, &volume, &query.path).await?;
    target.remove().await?;
    Ok(StatusCode::NO_CONTENT)
}
