//! The native dialect's downloads.

use std::sync::Arc;

use super::content::send_file;
use super::text::{WholeFile, read_whole};
use crate::prelude::*;
use crate::streamed_json::StreamedObject;

/// Form of a download: `text` in a JSON object, `bytes` or `stream` unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    /// Text in a JSON object. The file must be UTF-8.
    #[default]
    Text,
    /// The bytes of the file.
    Bytes,
    /// The bytes of the file, like `bytes`.
    Stream,
}

/// Request to download a file.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct DownloadRequest {
    /// Sandbox that holds the file.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Path of the file.
    #[schema(schema_with = bounds::path_schema)]
    #[serde(alias = "path")]
    file_path: String,
    /// Form of the response (default `text`).
    #[serde(default)]
    format: Format,
}

/// Content of a file as text.
#[expect(
    dead_code,
    reason = "describes a response that is written field by field"
)]
#[derive(Debug, ToSchema)]
pub(super) struct TextFile {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Whole content of the file as text.
    content: String,
    /// Summary of the result for people.
    message: String,
}

/// Download a file as text or bytes
///
/// Returns a file in the requested `format`: as text in a JSON object (up to 32 MiB of UTF-8), or unchanged.
#[utoipa::path(
    post, path = "/sandboxes/download-file", tag = "files", request_body = DownloadRequest,
    responses((status = 200, description = "File content returned.", content(
        (TextFile = "application/json"), (Vec<u8> = "application/octet-stream"))))
)]
pub(super) async fn download_file(
    call: Call,
    Body(request): Body<DownloadRequest>,
) -> ApiResult<Response> {
    if request.format != Format::Text {
        return send(&call, &request).await;
    }
    bounds::path("file_path", &request.file_path)?;
    let live = call.live(&request.sandbox_id).await?;
    let max = call.app.settings().max_json_bytes;
    let read = read_whole(&call, &live.agent, &request.file_path, max).await?;
    let Some(WholeFile { content, memory }) = read else {
        let text = format!("the file has more than {max} bytes, the limit of a JSON response");
        return Err(ServiceError::new(ErrorKind::TooLarge, text)
            .hint("use the format `stream`")
            .into());
    };
    let content = String::from_utf8(content).map_err(|_| {
        ServiceError::new(ErrorKind::NotText, "the file is not UTF-8 text")
            .hint("use the format `bytes` or `stream`")
    })?;
    let content = Arc::new(content);
    Ok(StreamedObject::default()
        .field("success", true)
        .text("content", &[&content])
        .field("message", format!("{} bytes read", content.len()))
        .into_response(memory))
}

/// Download a file as a stream
///
/// Returns a file of any size unchanged, whatever `format` says.
#[utoipa::path(
    post, path = "/sandboxes/download-file-stream", tag = "files", request_body = DownloadRequest,
    responses((status = 200, description = "File content returned.", content_type = "application/octet-stream"))
)]
pub(super) async fn download_file_stream(
    call: Call,
    Body(request): Body<DownloadRequest>,
) -> ApiResult<Response> {
    send(&call, &request).await
}

async fn send(call: &Call, request: &DownloadRequest) -> ApiResult<Response> {
    bounds::path("file_path", &request.file_path)?;
    let live = call.live(&request.sandbox_id).await?;
    let file = live.agent.read_file(&request.file_path).await?;
    Ok(send_file(live, file, &request.file_path))
}
