//! `POST /sandboxes/read-file`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use sandyard_core::ErrorKind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::file_path::path_of;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::files::{WholeFile, read_whole};
use crate::long_text::LongObject;
use crate::need::Who;

/// Largest file that is put into JSON.
const MAX_FILE: usize = 32 << 20;

/// A text file to be read.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ReadFile {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Where; relative paths begin at the user's home.
    #[schema(schema_with = bounds::path_schema)]
    path: Option<String>,
    /// The same as `path`.
    #[schema(schema_with = bounds::path_schema)]
    file_path: Option<String>,
}

/// A text file.
#[expect(
    dead_code,
    reason = "describes an answer that is written piece by piece"
)]
#[derive(Debug, ToSchema)]
pub(crate) struct FileContent {
    /// Always true; failures are HTTP errors.
    success: bool,
    /// All of it.
    content: String,
}

/// Reads a text file of up to 32 MiB.
#[utoipa::path(
    post, path = "/sandboxes/read-file", operation_id = "read_file", tag = "files",
    request_body = ReadFile,
    responses((status = 200, description = "Its content.", body = FileContent))
)]
pub(crate) async fn read_file(
    State(app): State<App>,
    Who(caller): Who,
    Body(request): Body<ReadFile>,
) -> Result<Response, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?;
    let path = path_of(request.path, request.file_path)?;
    let live = app.service().live(&caller, name).await?;
    let read = read_whole(&app, &caller, &live.agent, &path, MAX_FILE).await?;
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
    Ok(LongObject::default()
        .field("success", true)
        .text("content", &[&Arc::new(content)])
        .into_response(memory))
}
