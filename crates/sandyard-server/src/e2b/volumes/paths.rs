//! `/volumecontent/{id}/path`: attributes of files and folders, and their end.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::entry::E2bVolumeEntry;
use super::volume_path::{Attributes, VolumePath};
use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Body, PathName, Query};

/// Which file or folder.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PathQuery {
    /// As seen from the volume's root.
    #[param(max_length = 4096, pattern = r"^[^\u0000]*$")]
    pub(super) path: String,
}

/// What is to be different; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct E2bVolumeChange {
    #[schema(maximum = 65_535)]
    uid: Option<u32>,
    #[schema(maximum = 65_535)]
    gid: Option<u32>,
    #[schema(maximum = 4095)]
    mode: Option<u32>,
}

/// Shows what is known of a file or folder of a volume.
#[utoipa::path(get, path = "/e2b/volumecontent/{name}/path", operation_id = "e2b_get_volume_path", tag = "e2b",
    params(("name" = String, Path, description = "The volume.", min_length = 1, max_length = 128), PathQuery),
    responses((status = 200, description = "It.", body = E2bVolumeEntry)))]
pub(super) async fn e2b_get_volume_path(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
) -> Result<Json<E2bVolumeEntry>, ApiError> {
    let target = VolumePath::open(&app, &caller, &volume, &query.path).await?;
    Ok(Json(target.stat().await?))
}

/// Changes who owns a file or folder of a volume, and who may do what with it.
#[utoipa::path(patch, path = "/e2b/volumecontent/{name}/path", operation_id = "e2b_change_volume_path", tag = "e2b",
    params(("name" = String, Path, description = "The volume.", min_length = 1, max_length = 128), PathQuery), request_body = E2bVolumeChange,
    responses((status = 200, description = "It, as it is now.", body = E2bVolumeEntry)))]
pub(super) async fn e2b_change_volume_path(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
    Body(change): Body<E2bVolumeChange>,
) -> Result<Json<E2bVolumeEntry>, ApiError> {
    let attributes = Attributes {
        uid: change.uid,
        gid: change.gid,
        mode: change.mode,
    }
    .check()?;
    let target = VolumePath::open(&app, &caller, &volume, &query.path).await?;
    target.change(attributes).await?;
    Ok(Json(target.stat().await?))
}

/// Removes a file, or a folder with all that is in it.
#[utoipa::path(delete, path = "/e2b/volumecontent/{name}/path", operation_id = "e2b_remove_volume_path", tag = "e2b",
    params(("name" = String, Path, description = "The volume.", min_length = 1, max_length = 128), PathQuery),
    responses((status = 204, description = "It is gone.")))]
pub(super) async fn e2b_remove_volume_path(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
) -> Result<StatusCode, ApiError> {
    let target = VolumePath::open(&app, &caller, &volume, &query.path).await?;
    target.remove().await?;
    Ok(StatusCode::NO_CONTENT)
}
