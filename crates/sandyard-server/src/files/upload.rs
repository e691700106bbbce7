//! The native dialect's multipart upload.

use std::io;

use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

use super::bounded_form::{BoundedForm, MAX_IDLE, Progress};
use super::content::Upload;
use super::write_result::FileWriteResult;
use crate::listen::is_body_timeout;
use crate::prelude::*;
use crate::route::Route;

/// Longest id or path in a form, in bytes.
const MAX_FIELD: usize = 8 << 10;
/// Largest number of fields in a form.
const MAX_FIELDS: usize = 32;

/// Removes the limit on the body: it is never held in memory.
pub(super) fn without_body_limit(mut route: Route) -> Route {
    route.methods = route.methods.layer(DefaultBodyLimit::disable());
    route
}

/// Form of an upload.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a form that is read field by field")]
pub(super) struct UploadForm {
    /// Sandbox that receives the file. Must come before `file`.
    sandbox_id: String,
    /// Path of the file. A relative path starts at the user's home directory. Must come before `file`.
    file_path: String,
    /// Content of the file.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: String,
}

/// Fields of the form that may be in the query instead.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UploadQuery {
    /// Sandbox that receives the file, if the form does not have the field.
    sandbox_id: Option<String>,
    /// Path of the file, if the form does not have the field.
    #[serde(alias = "path")]
    file_path: Option<String>,
}

/// Upload a file from a form
///
/// Writes a file sent as `multipart/form-data`. The fields `sandbox_id` and `file_path` must come before `file`,
/// because the server streams the file into the sandbox as it arrives.
#[utoipa::path(
    post, path = "/sandboxes/upload-file", tag = "files", params(UploadQuery),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "File written.", body = FileWriteResult))
)]
pub(super) async fn upload_file(
    call: Call,
    Query(mut target): Query<UploadQuery>,
    request: Request,
) -> Reply<FileWriteResult> {
    let progress = Progress::default();
    let request = request
        .map(|body| Body::from_stream(BoundedForm::new(body.into_data_stream(), progress.clone())));
    let form = Multipart::from_request(request, &call.app).await;
    let mut form = form.map_err(|error| {
        ApiError::new(
            ErrorKind::Invalid,
            format!(
                "the body must be `multipart/form-data`: {}",
                error.body_text()
            ),
        )
    })?;
    for _ in 0..MAX_FIELDS {
        let next = form.next_field().await;
        let Some(field) = next.map_err(|error| broken(&error, &progress))? else {
            break;
        };
        progress.reset();
        let name = field.name().map(str::to_owned);
        let mut chunks = Chunks {
            field,
            progress: progress.clone(),
        };
        match name.as_deref() {
            Some("sandbox_id") => target.sandbox_id = Some(text(chunks, "sandbox_id").await?),
            Some("file_path" | "path") => target.file_path = Some(text(chunks, "file_path").await?),
            Some("file") => return write(&call, target, chunks).await,
            _ => while chunks.next().await?.is_some() {},
        }
    }
    Err(ServiceError::invalid("file", "the form has no field `file`").into())
}

/// The content of a field.
struct Chunks<'a> {
    field: Field<'a>,
    progress: Progress,
}

impl Chunks<'_> {
    async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        let chunk = self.field.chunk().await;
        let chunk = chunk.map_err(|error| broken(&error, &self.progress))?;
        self.progress.reset();
        Ok(chunk)
    }
}

/// Writes the file while it is received.
async fn write(call: &Call, target: UploadQuery, file: Chunks<'_>) -> Reply<FileWriteResult> {
    let (Some(sandbox_id), Some(path)) = (target.sandbox_id, target.file_path) else {
        return Err(ServiceError::invalid(
            "file",
            "the field `file` comes before `sandbox_id` and `file_path`",
        )
        .hint("send the form's fields in this order: sandbox_id, file_path, file")
        .into());
    };
    bounds::path("file_path", &path)?;
    let live = call.live(&sandbox_id).await?;
    // The writer needs an owned stream and the field is borrowed, so a short queue connects them.
    let (queue, chunks) = mpsc::channel::<io::Result<Bytes>>(2);
    let chunks = stream::unfold(chunks, |mut chunks| async move {
        Some((chunks.recv().await?, chunks))
    });
    let upload = Upload::new(&call.app, chunks);
    let mut writing = std::pin::pin!(upload.write(&live.agent, &path));
    let written = tokio::select! {
        // The writer may fail before the file was received.
        written = &mut writing => written,
        result = forward(file, queue) => {
            result?;
            writing.await
        }
    }?;
    Ok(Json(written))
}

/// Moves the content of a field into a queue. A form that breaks off makes the writer fail, so that no half file stays.
async fn forward(mut file: Chunks<'_>, queue: mpsc::Sender<io::Result<Bytes>>) -> ApiResult<()> {
    loop {
        match file.next().await {
            Ok(Some(chunk)) => {
                if queue.send(Ok(chunk)).await.is_err() {
                    // The writer has failed, and its result has the reason.
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                let _ = queue.send(Err(io::ErrorKind::ConnectionReset.into())).await;
                return Err(error);
            }
        }
    }
}

/// Reads a short field.
async fn text(mut field: Chunks<'_>, name: &'static str) -> ApiResult<String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.next().await? {
        if bytes.len() + chunk.len() > MAX_FIELD {
            return Err(ServiceError::invalid(
                name,
                format!("the field is longer than {MAX_FIELD} bytes"),
            )
            .into());
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| ServiceError::invalid(name, "not UTF-8").into())
}

fn broken(error: &MultipartError, progress: &Progress) -> ApiError {
    if progress.is_stuck() {
        let text = format!("the form has more than {MAX_IDLE} bytes before or between its fields");
        return ApiError::new(ErrorKind::TooLarge, text);
    }
    if is_body_timeout(error) {
        return ApiError::new(
            ErrorKind::TimedOut,
            "no more of the form was received in time",
        );
    }
    let kind = match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::TooLarge,
        _ => ErrorKind::BadRequest,
    };
    ApiError::new(
        kind,
        format!("the form cannot be read: {}", error.body_text()),
    )
}
