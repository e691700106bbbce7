//! Names and attributes of files: list, stat, rename, remove, create a folder.

use sandyard_agent_client::wire::filesystem::{EntryInfo, FileType};

use super::raw::{FileQuery, OpenFile, agent_for};
use crate::model::Done;
use crate::prelude::*;

/// File, directory or symbolic link.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Entry {
    /// Last component of the path.
    name: String,
    /// Absolute path inside the sandbox.
    path: String,
    /// `file`, `directory` or `symlink`.
    r#type: &'static str,
    /// Size in bytes.
    size: i64,
    /// Permission bits as a number, for example 420 for `0644`.
    mode: u32,
    /// Permission bits in the form of `ls -l`.
    permissions: String,
    /// User name of the owner.
    owner: String,
    /// Name of the group.
    group: String,
    /// Time at which the content last changed (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_at: Option<String>,
    /// Target of a symbolic link; null for other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
}

impl From<EntryInfo> for Entry {
    fn from(info: EntryInfo) -> Self {
        Self {
            name: info.name,
            path: info.path,
            r#type: match info.r#type {
                _ if info.symlink_target.is_some() => "symlink",
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

/// Entries of a directory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Listing {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Absolute path of the directory.
    path: String,
    /// Files and directories found.
    entries: Vec<Entry>,
}

/// One entry of the file system.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OneEntry {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// File, directory or symbolic link.
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

/// The depth of a listing.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DepthQuery {
    /// Number of levels to descend, 1–64 (default 1: only the directory itself).
    #[param(inline)]
    depth: Option<BoundedInt<1, 64>>,
}

/// List a directory
///
/// Returns the entries of a directory, down to `depth` levels.
#[utoipa::path(
    get, path = "/sandboxes/{id}/files/list", tag = "files", params(SandboxName, FileQuery, DepthQuery),
    responses((status = 200, description = "Directory entries returned.", body = Listing))
)]
pub(super) async fn list_files(
    Query(DepthQuery { depth }): Query<DepthQuery>,
    file: OpenFile,
) -> Reply<Listing> {
    let depth = depth.map_or(1, |depth| u32::try_from(depth.0).unwrap_or(1));
    let path = file.query.path;
    let entries = file.agent.list_dir(&path, depth).await?;
    Ok(Json(Listing {
        success: true,
        path,
        entries: entries.into_iter().map(Entry::from).collect(),
    }))
}

/// Get information about a file
///
/// Returns type, size, permissions, owner and modification time of a file or directory.
#[utoipa::path(
    get, path = "/sandboxes/{id}/files/stat", tag = "files", params(SandboxName, FileQuery),
    responses((status = 200, description = "Information about the file returned.", body = OneEntry))
)]
pub(super) async fn stat_file(file: OpenFile) -> Reply<OneEntry> {
    let entry = file.agent.stat(&file.query.path).await?;
    Ok(Json(entry.into()))
}

/// Create a directory at a path
///
/// Creates a directory with its missing parents.
#[utoipa::path(
    post, path = "/sandboxes/{id}/files/mkdir", tag = "files", params(SandboxName, FileQuery),
    responses((status = 200, description = "Directory created.", body = OneEntry))
)]
pub(super) async fn make_folder(file: OpenFile) -> Reply<OneEntry> {
    let entry = file.agent.make_dir(&file.query.path).await?;
    Ok(Json(entry.into()))
}

/// Request to move a file or directory.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RenameRequest {
    /// Current path. A relative path starts at the user's home directory.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    #[serde(alias = "source", alias = "old_path")]
    from: String,
    /// New path. A relative path starts at the user's home directory.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    #[serde(alias = "destination", alias = "new_path")]
    to: String,
    /// User inside the sandbox who accesses the file. Default: the sandbox's default user.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
}

/// Move a file or directory
///
/// Moves or renames a file or directory within a sandbox.
#[utoipa::path(
    post, path = "/sandboxes/{id}/files/rename", tag = "files", params(SandboxName), request_body = RenameRequest,
    responses((status = 200, description = "File or directory moved; its entry at the new path is returned.", body = OneEntry))
)]
pub(super) async fn rename_file(
    call: Call,
    name: SandboxName,
    Body(request): Body<RenameRequest>,
) -> Reply<OneEntry> {
    bounds::path("from", &request.from)?;
    bounds::path("to", &request.to)?;
    bounds::optional_text("user", request.user.as_deref(), 1, 64)?;
    let live = call.live(&name.id).await?;
    let agent = agent_for(&live, request.user.as_deref());
    let entry = agent.rename(&request.from, &request.to).await?;
    Ok(Json(entry.into()))
}

/// Delete a file or directory
///
/// Deletes a file, or a directory with everything in it. Deleting a path that does not exist succeeds.
#[utoipa::path(
    delete, path = "/sandboxes/{id}/files", tag = "files", params(SandboxName, FileQuery),
    responses((status = 200, description = "File or directory deleted.", body = Done))
)]
pub(super) async fn remove_file(file: OpenFile) -> Reply<Done> {
    let path = file.query.path;
    file.agent.remove(&path).await?;
    Ok(Json(Done::new(format!("`{path}` deleted"))))
}
