//! `/volumecontent/{id}/dir`: lists and creates folders.

use axum::http::header;

use crate::prelude::*;

use super::entry::E2bVolumeEntry;
use super::listing_slots::ListingSlots;
use super::volume_path::{Attributes, VolumePath};

/// Largest depth of a listing.
const MAX_DEPTH: u32 = 100;

/// A folder to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Path inside the volume, from its root.
    #[param(max_length = 4096, pattern = r"^[^\u0000]*$")]
    path: String,
    /// Number of levels to descend, 0–100 (default 1; 0 counts as 1).
    #[param(minimum = 0, maximum = 100)]
    depth: Option<u32>,
}

/// A file or folder to create.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct MakeQuery {
    /// Path inside the volume, from its root.
    #[param(max_length = 4096, pattern = r"^[^\u0000]*$")]
    pub(super) path: String,
    /// User ID of the owner, 0–65535 (default 1000).
    #[param(maximum = 65_535)]
    pub(super) uid: Option<u32>,
    /// Group ID, 0–65535 (default 1000).
    #[param(maximum = 65_535)]
    pub(super) gid: Option<u32>,
    /// Permission bits as a decimal number, for example 420 for `0644`, 0–4095.
    #[param(maximum = 4095)]
    pub(super) mode: Option<u32>,
    /// Whether to create missing parent directories, and to replace what is there (default false).
    pub(super) force: Option<bool>,
}

impl MakeQuery {
    pub(super) fn attributes(&self) -> ServiceResult<Attributes> {
        Attributes {
            uid: self.uid,
            gid: self.gid,
            mode: self.mode,
        }
        .check()
    }
}

/// List a directory of a volume
///
/// Returns the entries of a directory of a volume, down to `depth` levels, at most 10,000.
#[utoipa::path(
    get, path = "/e2b/volumecontent/{name}/dir", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), ListQuery),
    responses((status = 200, description = "Directory entries returned.", body = [E2bVolumeEntry]))
)]
pub(super) async fn e2b_list_volume_dir(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let depth = query.depth.unwrap_or(1).max(1);
    if depth > MAX_DEPTH {
        let message = format!("`depth` must be at most {MAX_DEPTH} (got {depth})");
        return Err(ServiceError::invalid("depth", message).into());
    }
    let volume = call.service().volume(&call.caller, &volume).await?;
    let slots = call.app.state::<ListingSlots>();
    let _slot = slots.take(&volume.id).await?;
    let target = VolumePath::open(&call, &volume.id, &query.path).await?;
    let listed = target.list(depth).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], listed).into_response())
}

/// Create a directory in a volume
///
/// Creates a directory in a volume. With `force` the missing parents are created too.
#[utoipa::path(
    post, path = "/e2b/volumecontent/{name}/dir", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), MakeQuery),
    responses((status = 201, description = "Directory created.", body = E2bVolumeEntry))
)]
pub(super) async fn e2b_make_volume_dir(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<MakeQuery>,
) -> ApiResult<(StatusCode, Json<E2bVolumeEntry>)> {
    let attributes = query.attributes()?;
    let target = VolumePath::open(&call, &volume, &query.path).await?;
    target
        .make_dir(attributes, query.force.unwrap_or(false))
        .await?;
    Ok((StatusCode::CREATED, Json(target.stat().await?)))
}
