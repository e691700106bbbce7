//! Files that are sent to a URL.

use reqwest::Body as OutgoingBody;

use crate::prelude::*;

use super::content::chunks_of;

/// Request to send a file to a URL.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ToUrlRequest {
    /// Sandbox that holds the file.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Path of the file.
    #[schema(schema_with = bounds::path_schema)]
    #[serde(alias = "path", alias = "sandbox_path")]
    file_path: String,
    /// URL to send the file to: `http` or `https`, port 80, 443, or 1024 and above, with a public address.
    #[serde(alias = "url")]
    presigned_url: String,
}

/// File that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FileTransferResult {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Number of bytes sent.
    size: u64,
    /// Summary of the result for people.
    message: String,
}

/// Send a file to a URL
///
/// Uploads a file of the sandbox to a URL with a `PUT` request, for example to a presigned URL of an object store. Only
/// public addresses are allowed, and redirects are not followed.
#[utoipa::path(
    post, path = "/sandboxes/download-to-presigned-url", tag = "files", request_body = ToUrlRequest,
    responses((status = 200, description = "File sent.", body = FileTransferResult))
)]
pub(super) async fn download_to_presigned_url(
    call: Call,
    Body(request): Body<ToUrlRequest>,
) -> Reply<FileTransferResult> {
    bounds::path("file_path", &request.file_path)?;
    let url_client = call.app.url_client()?;
    let live = call.live(&request.sandbox_id).await?;
    let file = live.agent.read_file(&request.file_path).await?;
    let size = file.size().ok_or_else(|| {
        ServiceError::new(
            ErrorKind::Invalid,
            "the file has no fixed size, so it cannot be sent",
        )
    })?;
    let content = OutgoingBody::wrap_stream(chunks_of(live, file));
    url_client
        .put("presigned_url", &request.presigned_url, size, content)
        .await?;
    Ok(Json(FileTransferResult {
        success: true,
        size,
        message: format!("{size} bytes of `{}` sent", request.file_path),
    }))
}
