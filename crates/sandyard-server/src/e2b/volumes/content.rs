//! `/volumecontent/{id}/file`: contents of files, streamed both ways.

use std::io;

use axum::body::Body;
use futures_util::stream;

use super::dirs::MakeQuery;
use super::entry::{E2bVolumeEntry, E2bVolumeEntryType};
use super::error::with_client_paths;
use super::paths::PathQuery;
use super::volume_path::{Attributes, VolumePath};
use crate::files::{read_body, send_bytes};
use crate::middleware::request_id::random_uuid;
use crate::prelude::*;

/// Download a file from a volume
///
/// Returns the content of a file of a volume.
#[utoipa::path(
    get, path = "/e2b/volumecontent/{name}/file", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), PathQuery),
    responses((status = 200, description = "File content returned.", content_type = "application/octet-stream"))
)]
pub(super) async fn e2b_read_volume_file(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<PathQuery>,
) -> ApiResult<Response> {
    let target = VolumePath::open(&call, &volume, &query.path).await?;
    let file = match target.agent.read_file(&target.path_in_sandbox()?).await {
        Err(error) if error.is_not_found() => return Err(target.not_found().into()),
        file => file.map_err(with_client_paths)?,
    };
    let size = file.size();
    let chunks = stream::unfold(file, |mut file| async move {
        let chunk = file.next().await?.map_err(io::Error::other);
        Some((chunk, file))
    });
    Ok(send_bytes(chunks, size))
}

/// Upload a file to a volume
///
/// Writes the request body to a file of a volume, replacing what is there. With `force` the missing parent directories
/// are created.
#[utoipa::path(
    put, path = "/e2b/volumecontent/{name}/file", tag = "e2b",
    params(("name" = String, Path, description = "ID of the volume.", min_length = 1, max_length = 128), MakeQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, description = "File written.", body = E2bVolumeEntry))
)]
pub(super) async fn e2b_write_volume_file(
    call: Call,
    PathName(volume): PathName,
    Query(query): Query<MakeQuery>,
    body: Body,
) -> ApiResult<(StatusCode, Json<E2bVolumeEntry>)> {
    let attributes = query.attributes()?;
    let target = VolumePath::open(&call, &volume, &query.path).await?;
    let path_in_sandbox = target.path_in_sandbox()?;
    let before = target.try_stat().await?;
    refuse_if(
        before.as_ref(),
        E2bVolumeEntryType::Directory,
        "the path is a folder",
    )?;
    if before.is_none() {
        let parent = target.parent();
        match query.force {
            Some(true) => {
                let owner = Attributes {
                    mode: None,
                    ..attributes
                };
                parent.make_dir(owner, true).await?;
            }
            _ => {
                // Writing would create a missing folder.
                let above = parent.stat().await?;
                refuse_if(
                    Some(&above),
                    E2bVolumeEntryType::File,
                    "the parent of the path is not a folder",
                )?;
            }
        }
    }
    // A new file is written beside the old one, which stays until the new one is complete.
    let destination = match &before {
        Some(before) if before.kind == E2bVolumeEntryType::File => temporary_path(&path_in_sandbox),
        _ => path_in_sandbox.clone(),
    };
    let upload = read_body(&call.app, body);
    upload
        .write_all(&target.agent, &destination)
        .await
        .map_err(with_client_paths)?;
    if destination != path_in_sandbox
        && let Err(error) = target.agent.rename(&destination, &path_in_sandbox).await
    {
        let _ = target.agent.remove(&destination).await;
        return Err(with_client_paths(error).into());
    }
    let attributes = match before {
        Some(before) if before.kind == E2bVolumeEntryType::File => Attributes {
            uid: attributes.uid.or(Some(before.uid)),
            gid: attributes.gid.or(Some(before.gid)),
            mode: attributes.mode.or(Some(before.mode & 0o7777)),
        },
        Some(_) => attributes,
        None => attributes.or_default(0o666),
    };
    target.change(attributes).await?;
    Ok((StatusCode::CREATED, Json(target.stat().await?)))
}

/// An unused name in the same folder.
fn temporary_path(path: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/.{}.part", random_uuid())
}

fn refuse_if(
    entry: Option<&E2bVolumeEntry>,
    kind: E2bVolumeEntryType,
    requirement: &str,
) -> ServiceResult<()> {
    match entry.is_some_and(|entry| entry.kind == kind) {
        true => Err(ServiceError::invalid("path", requirement)),
        false => Ok(()),
    }
}
