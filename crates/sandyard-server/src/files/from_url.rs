//! Files that are fetched from a URL.

use std::io;

use futures_util::TryStreamExt;

use super::content::Upload;
use super::write_result::FileWriteResult;
use crate::prelude::*;
use crate::url_client::FetchedUrl;

/// Request to write a file from a URL.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct FromUrlRequest {
    /// Sandbox that receives the file.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Path of the file.
    #[schema(schema_with = bounds::path_schema)]
    #[serde(alias = "path")]
    file_path: String,
    /// URL to download: `http` or `https`, port 80, 443, or 1024 and above, with a public address.
    #[serde(alias = "presigned_url")]
    url: String,
}

/// Upload a file from a URL
///
/// Downloads a URL on the server and writes the content to a file in the sandbox. Only public addresses are allowed,
/// also after redirects; at most five redirects are followed.
#[utoipa::path(
    post, path = "/sandboxes/upload-file-from-url", tag = "files", request_body = FromUrlRequest,
    responses((status = 200, description = "File written.", body = FileWriteResult))
)]
pub(super) async fn upload_file_from_url(
    call: Call,
    Body(request): Body<FromUrlRequest>,
) -> Reply<FileWriteResult> {
    bounds::path("file_path", &request.file_path)?;
    let live = call.live(&request.sandbox_id).await?;
    let FetchedUrl { response, size } = call.app.url_client()?.get("url", &request.url).await?;
    let chunks = response
        .bytes_stream()
        .map_err(|error| io::Error::other(error.without_url()));
    let upload = Upload::new(&call.app, chunks);
    upload.check_size(size)?;
    let written = upload.write(&live.agent, &request.file_path).await;
    written.map(Json).map_err(|error| match error.kind {
        // The request is complete; the host of the URL broke off.
        ErrorKind::BadRequest => ServiceError::new(
            error.kind,
            "the host of the URL broke off before the end of the file",
        )
        .source(error)
        .into(),
        _ => error.into(),
    })
}
