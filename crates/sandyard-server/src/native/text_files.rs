//! `POST /sandboxes/read-file` and `POST /sandboxes/write-file`.

use std::sync::Arc;

use crate::actions::write_file::{self, WriteFile};
use crate::files::{WholeFile, read_whole};
use crate::model::Done;
use crate::model::file_path::path_of;
use crate::prelude::*;
use crate::streamed_json::StreamedObject;

/// Largest file that is returned in JSON, in bytes.
const MAX_FILE: usize = 32 << 20;

/// Request to read a text file. One of `path` and `file_path` is required.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ReadFile {
    /// Sandbox that holds the file.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Path of the file.
    #[schema(schema_with = bounds::path_schema)]
    path: Option<String>,
    /// Alias of `path`.
    #[schema(schema_with = bounds::path_schema)]
    file_path: Option<String>,
}

/// Content of a text file.
#[expect(
    dead_code,
    reason = "describes an answer that is written piece by piece"
)]
#[derive(Debug, ToSchema)]
pub(crate) struct FileContent {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Whole content of the file as text.
    content: String,
}

/// Read a text file
///
/// Returns the content of a UTF-8 text file of up to 32 MiB. Use `GET /sandboxes/{id}/files` for binary or larger
/// files.
#[utoipa::path(
    post, path = "/sandboxes/read-file", tag = "files", request_body = ReadFile,
    responses((status = 200, description = "File content returned.", body = FileContent))
)]
pub(crate) async fn read_file(call: Call, Body(request): Body<ReadFile>) -> ApiResult<Response> {
    let name = sandbox_name(&request.sandbox_id)?;
    let path = path_of(request.path, request.file_path)?;
    let live = call.live(name).await?;
    let read = read_whole(&call, &live.agent, &path, MAX_FILE).await?;
    let Some(WholeFile { content, memory }) = read else {
        return Err(ApiError::new(
            ErrorKind::TooLarge,
            format!("`{path}` is over {} MiB", MAX_FILE >> 20),
        )
        .hint("use POST /sandboxes/download-file, which streams"));
    };
    let content = String::from_utf8(content).map_err(|_| {
        ApiError::new(ErrorKind::NotText, format!("`{path}` is not UTF-8 text"))
            .hint("use POST /sandboxes/download-file with `\"format\": \"bytes\"`")
    })?;
    Ok(StreamedObject::default()
        .field("success", true)
        .text("content", &[&Arc::new(content)])
        .into_response(memory))
}

/// Write a text file
///
/// Writes a text file and creates the missing parent directories. An existing file is replaced. Use `PUT
/// /sandboxes/{id}/files` for binary or large content.
#[utoipa::path(
    post, path = "/sandboxes/write-file", tag = "files", request_body = WriteFile,
    responses((status = 200, description = "File written.", body = Done))
)]
pub(crate) async fn write_file(call: Call, Body(request): Body<WriteFile>) -> Reply<Done> {
    write_file::write_file(&call, request).await.map(Json)
}
