//! `/sandboxes/{id}/files?path=`: the bytes of a file.

use axum::Json;
use axum::body::Body;
use axum::response::Response;
use sandyard_agent_client::AgentClient;
use sandyard_service::Live;
use serde::Deserialize;
use utoipa::IntoParams;

use super::content::{read_body, send_file};
use super::write_result::FileWriteResult;
use crate::bounds;
use crate::call::Call;
use crate::error::{ApiError, Reply};
use crate::extract::{Query, SandboxName};

/// A file, and the user that accesses it.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FileQuery {
    /// Path inside the sandbox. A relative path starts at the user's home directory.
    #[serde(alias = "file_path")]
    #[param(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    pub(super) path: String,
    /// User inside the sandbox who accesses the file. Default: the sandbox's default user.
    #[param(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    pub(super) user: Option<String>,
}

impl FileQuery {
    /// Checks the query and wakes the sandbox.
    pub(super) async fn open(&self, call: &Call, name: &SandboxName) -> Result<Live, ApiError> {
        bounds::path("path", &self.path)?;
        bounds::optional_text("user", self.user.as_deref(), 1, 64)?;
        Ok(call.live(&name.id).await?)
    }

    /// The agent, acting as the user.
    pub(super) fn agent(&self, live: &Live) -> AgentClient {
        agent_for(live, self.user.as_deref())
    }
}

/// The agent, acting as a user.
pub(super) fn agent_for(live: &Live, user: Option<&str>) -> AgentClient {
    match user {
        Some(user) => live.agent.as_user(user),
        None => live.agent.clone(),
    }
}

/// Download a file
///
/// Returns the content of a file of any size, unchanged. A `HEAD` request returns its size in `Content-Length`.
#[utoipa::path(
    get, path = "/sandboxes/{id}/files", tag = "files", params(SandboxName, FileQuery),
    responses((status = 200, description = "File content returned.", content_type = "application/octet-stream"))
)]
pub(super) async fn get_file(
    call: Call,
    name: SandboxName,
    Query(query): Query<FileQuery>,
) -> Result<Response, ApiError> {
    let live = query.open(&call, &name).await?;
    let file = query.agent(&live).read_file(&query.path).await?;
    Ok(send_file(live, file, &query.path))
}

/// Upload a file
///
/// Writes the request body to a file and creates the missing parent directories. The body may be of any size. If the
/// upload is interrupted, the file stays as it was.
#[utoipa::path(
    put, path = "/sandboxes/{id}/files", tag = "files", params(SandboxName, FileQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "File written.", body = FileWriteResult))
)]
pub(super) async fn put_file(
    call: Call,
    name: SandboxName,
    Query(query): Query<FileQuery>,
    body: Body,
) -> Reply<FileWriteResult> {
    let live = query.open(&call, &name).await?;
    let agent = query.agent(&live);
    let upload = read_body(&call.app, body);
    Ok(Json(upload.write(&agent, &query.path).await?))
}

/// Upload a file with POST
///
/// Same as `PUT /sandboxes/{id}/files`, for clients that cannot send `PUT`.
#[utoipa::path(
    post, path = "/sandboxes/{id}/files", tag = "files", params(SandboxName, FileQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "File written.", body = FileWriteResult))
)]
pub(super) async fn post_file(
    call: Call,
    name: SandboxName,
    query: Query<FileQuery>,
    body: Body,
) -> Reply<FileWriteResult> {
    put_file(call, name, query, body).await
}
