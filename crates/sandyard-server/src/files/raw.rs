//! `/sandboxes/{id}/files?path=`: the bytes of a file.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sandyard_agent_client::AgentClient;
use sandyard_service::Live;

use super::content::{read_body, send_file};
use super::write_result::FileWriteResult;
use crate::app::App;
use crate::prelude::*;

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

/// The file that a request names, in a sandbox that it has woken.
pub(super) struct OpenFile {
    pub(super) call: Call,
    pub(super) live: Live,
    /// The agent, acting as the user.
    pub(super) agent: AgentClient,
    pub(super) query: FileQuery,
}

impl FromRequestParts<App> for OpenFile {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let call = Call::from_request_parts(parts, app).await?;
        let name = SandboxName::from_request_parts(parts, app).await?;
        let Query(query) = Query::<FileQuery>::from_request_parts(parts, app).await?;
        bounds::path("path", &query.path)?;
        bounds::optional_text("user", query.user.as_deref(), 1, 64)?;
        let live = call.live(&name.id).await?;
        Ok(Self {
            agent: agent_for(&live, query.user.as_deref()),
            call,
            live,
            query,
        })
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
pub(super) async fn get_file(file: OpenFile) -> ApiResult<Response> {
    let path = file.query.path;
    let content = file.agent.read_file(&path).await?;
    Ok(send_file(file.live, content, &path))
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
pub(super) async fn put_file(file: OpenFile, body: Body) -> Reply<FileWriteResult> {
    let upload = read_body(&file.call.app, body);
    Ok(Json(upload.write(&file.agent, &file.query.path).await?))
}

/// Upload a file with POST
///
/// Same as `PUT /sandboxes/{id}/files`, for clients that cannot send `PUT`.
#[utoipa::path(
    post, path = "/sandboxes/{id}/files", tag = "files", params(SandboxName, FileQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "File written.", body = FileWriteResult))
)]
pub(super) async fn post_file(file: OpenFile, body: Body) -> Reply<FileWriteResult> {
    put_file(file, body).await
}
