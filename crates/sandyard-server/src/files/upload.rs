//! The native dialect's multipart upload.

use std::io;

use axum::Json;
use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::stream;
use sandyard_core::{Caller, ErrorKind};
use sandyard_service::ServiceError;
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use super::content::Upload;
use super::paced::{MAX_IDLE, Paced, Progress};
use super::written::Written;
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Query, sandbox_name};
use crate::listen::is_late;
use crate::route::Route;

/// Longest id or path in a form.
const MAX_FIELD: usize = 8 << 10;
/// Fields looked at before a form counts as nonsense.
const MAX_FIELDS: usize = 32;

/// Takes the limit on bodies away: this one is never held in memory.
pub(super) fn unlimited(mut route: Route) -> Route {
    route.methods = route.methods.layer(DefaultBodyLimit::disable());
    route
}

/// Form of an upload.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "read piece by piece; this says it to the document"
)]
pub(super) struct UploadForm {
    /// Sandbox that receives the file. Must come before `file`.
    sandbox_id: String,
    /// Path of the file. A relative path starts at the user's home directory. Must come before `file`.
    file_path: String,
    /// Content of the file.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: String,
}

/// What may also be said in the query.
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
#[utoipa::path(post, path = "/sandboxes/upload-file", operation_id = "upload_file", tag = "files",
    params(UploadQuery),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "File written.", body = Written)))]
pub(super) async fn upload_file(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(mut known): Query<UploadQuery>,
    request: Request,
) -> Result<Json<Written>, ApiError> {
    let progress = Progress::default();
    let request = request
        .map(|body| Body::from_stream(Paced::new(body.into_data_stream(), progress.clone())));
    let form = Multipart::from_request(request, &app).await;
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
        progress.note();
        let name = field.name().map(str::to_owned);
        let mut pieces = Pieces {
            field,
            progress: progress.clone(),
        };
        match name.as_deref() {
            Some("sandbox_id") => known.sandbox_id = Some(text(pieces, "sandbox_id").await?),
            Some("file_path" | "path") => known.file_path = Some(text(pieces, "file_path").await?),
            Some("file") => return write(&app, &caller, known, pieces).await,
            _ => while pieces.next().await?.is_some() {},
        }
    }
    Err(ServiceError::invalid("file", "the form has no field `file`").into())
}

/// A field's content.
struct Pieces<'a> {
    field: Field<'a>,
    progress: Progress,
}

impl Pieces<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = self.field.chunk().await;
        let piece = piece.map_err(|error| broken(&error, &self.progress))?;
        self.progress.note();
        Ok(piece)
    }
}

/// Passes the file on.
async fn write(
    app: &App,
    caller: &Caller,
    known: UploadQuery,
    file: Pieces<'_>,
) -> Result<Json<Written>, ApiError> {
    let (Some(sandbox_id), Some(path)) = (known.sandbox_id, known.file_path) else {
        return Err(ServiceError::invalid(
            "file",
            "`file` comes before `sandbox_id` and `file_path` are known",
        )
        .hint("send the form's fields in this order: sandbox_id, file_path, file")
        .into());
    };
    bounds::path("file_path", &path)?;
    let live = app
        .service()
        .live(caller, sandbox_name(&sandbox_id)?)
        .await?;
    // The field lives on this task's stack and the writer wants what it owns: a short queue lies between them.
    let (queue, pieces) = mpsc::channel::<io::Result<Bytes>>(2);
    let pieces = stream::unfold(pieces, |mut pieces| async move {
        Some((pieces.recv().await?, pieces))
    });
    let upload = Upload::new(app, pieces);
    let mut writing = std::pin::pin!(upload.write(&live.agent, &path));
    let written = tokio::select! {
        // A refusal comes before the file is through.
        written = &mut writing => written,
        result = pass_on(file, queue) => {
            result?;
            writing.await
        }
    }?;
    Ok(Json(written))
}

/// Moves a field's content into a queue. A form that breaks off makes the reader fail, so that nothing half is kept.
async fn pass_on(
    mut file: Pieces<'_>,
    queue: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), ApiError> {
    loop {
        match file.next().await {
            Ok(Some(piece)) => {
                if queue.send(Ok(piece)).await.is_err() {
                    // The writer has given up and says why.
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

/// A short field.
async fn text(mut field: Pieces<'_>, name: &'static str) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.next().await? {
        if bytes.len() + piece.len() > MAX_FIELD {
            return Err(ServiceError::invalid(name, "the field is too long").into());
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).map_err(|_| ServiceError::invalid(name, "not UTF-8").into())
}

fn broken(error: &MultipartError, progress: &Progress) -> ApiError {
    if progress.is_stuck() {
        let text = format!("the form has {MAX_IDLE} bytes and more before or between its fields");
        return ApiError::new(ErrorKind::TooLarge, text);
    }
    if is_late(error) {
        return ApiError::new(ErrorKind::TimedOut, "the form stopped coming");
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
