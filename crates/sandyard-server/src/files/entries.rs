//! Names and attributes of files: list, stat, rename, remove, make a folder.

use axum::Json;
use axum::extract::State;
use sandyard_agent_client::wire::filesystem::{EntryInfo, FileType};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::raw::{FileQuery, agent_for};
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::{Body, Query, SandboxName};

/// What is known of a file.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Entry {
    /// Last component of the path.
    name: String,
    /// In full.
    path: String,
    /// `file`, `directory` or `symlink`.
    r#type: &'static str,
    /// Bytes.
    size: i64,
    /// Permission bits.
    mode: u32,
    /// The same as `ls -l` shows them.
    permissions: String,
    owner: String,
    group: String,
    /// When its content last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_at: Option<String>,
    /// Where a symbolic link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
}

impl From<EntryInfo> for Entry {
    fn from(info: EntryInfo) -> Self {
        Self {
            name: info.name,
            path: info.path,
            r#type: match info.r#type {
                _ if info.is_symlink => "symlink",
                FileType::Directory => "directory",
                FileType::Symlink => "symlink",
                _ => "file",
            },
            size: info.size,
            mode: info.mode,
            permissions: info.permissions,
            owner: info.owner,
            group: info.group,
            modified_at: info.modified_time,
            symlink_target: info.symlink_target,
        }
    }
}

/// What a folder holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Listing {
    success: bool,
    path: String,
    entries: Vec<Entry>,
}

/// One file.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OneEntry {
    success: bool,
    entry: Entry,
}

impl From<EntryInfo> for OneEntry {
    fn from(info: EntryInfo) -> Self {
        Self {
            success: true,
            entry: info.into(),
        }
    }
}

/// How deep to go.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DepthQuery {
    /// Levels below the folder; 1 if not said.
    #[param(inline)]
    depth: Option<Whole<1, 64>>,
}

/// Lists a folder.
#[utoipa::path(get, path = "/sandboxes/{id}/files/list", operation_id = "list_files", tag = "files",
    params(SandboxName, FileQuery, DepthQuery),
    responses(
        (status = 200, description = "What it holds", body = Listing)))]
pub(super) async fn list_files(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FileQuery>,
    Query(DepthQuery { depth }): Query<DepthQuery>,
) -> Result<Json<Listing>, ApiError> {
    let depth = depth.map_or(1, |depth| u32::try_from(depth.0).unwrap_or(1));
    let live = query.open(&app, &caller, &name).await?;
    let entries = query.agent(&live).list_dir(&query.path, depth).await?;
    Ok(Json(Listing {
        success: true,
        path: query.path,
        entries: entries.into_iter().map(Entry::from).collect(),
    }))
}

/// Tells what is known of a file.
#[utoipa::path(get, path = "/sandboxes/{id}/files/stat", operation_id = "stat_file", tag = "files",
    params(SandboxName, FileQuery),
    responses(
        (status = 200, description = "What is known", body = OneEntry)))]
pub(super) async fn stat_file(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FileQuery>,
) -> Result<Json<OneEntry>, ApiError> {
    let live = query.open(&app, &caller, &name).await?;
    let entry = query.agent(&live).stat(&query.path).await?;
    Ok(Json(entry.into()))
}

/// Makes a folder, with its parents.
#[utoipa::path(post, path = "/sandboxes/{id}/files/mkdir", operation_id = "make_folder", tag = "files",
    params(SandboxName, FileQuery),
    responses(
        (status = 200, description = "The folder", body = OneEntry)))]
pub(super) async fn make_folder(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FileQuery>,
) -> Result<Json<OneEntry>, ApiError> {
    let live = query.open(&app, &caller, &name).await?;
    let entry = query.agent(&live).make_dir(&query.path).await?;
    Ok(Json(entry.into()))
}

/// Which file gets which name.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RenameRequest {
    /// The old path.
    #[schema(schema_with = bounds::path_schema)]
    #[serde(alias = "source", alias = "old_path")]
    from: String,
    /// The new path.
    #[schema(schema_with = bounds::path_schema)]
    #[serde(alias = "destination", alias = "new_path")]
    to: String,
    /// User inside the sandbox; the sandbox's own if not said.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
}

/// Gives a file or folder another path.
#[utoipa::path(post, path = "/sandboxes/{id}/files/rename", operation_id = "rename_file", tag = "files",
    params(SandboxName),
    request_body = RenameRequest,
    responses(
        (status = 200, description = "The file at its new place", body = OneEntry)))]
pub(super) async fn rename_file(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Body(request): Body<RenameRequest>,
) -> Result<Json<OneEntry>, ApiError> {
    bounds::path("from", &request.from)?;
    bounds::path("to", &request.to)?;
    bounds::optional_text("user", request.user.as_deref(), 1, 64)?;
    let live = app.service().live(&caller, &name.id).await?;
    let agent = agent_for(&live, request.user.as_deref());
    let entry = agent.rename(&request.from, &request.to).await?;
    Ok(Json(entry.into()))
}

/// That something was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Removed {
    success: bool,
    message: String,
}

/// Removes a file, or a folder with all it holds.
///
/// What does not exist is removed already.
#[utoipa::path(delete, path = "/sandboxes/{id}/files", operation_id = "remove_file", tag = "files",
    params(SandboxName, FileQuery),
    responses(
        (status = 200, description = "Removed", body = Removed)))]
pub(super) async fn remove_file(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<FileQuery>,
) -> Result<Json<Removed>, ApiError> {
    let live = query.open(&app, &caller, &name).await?;
    query.agent(&live).remove(&query.path).await?;
    Ok(Json(Removed {
        success: true,
        message: format!("`{}` is gone", query.path),
    }))
}
