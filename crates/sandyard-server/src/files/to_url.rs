//! Files that go to a URL.

use axum::Json;
use axum::extract::State;
use reqwest::Body as OutgoingBody;
use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::content::pieces_of;
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};

/// What to send, and where it goes.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ToUrlRequest {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Which file; relative to the user's home.
    #[schema(schema_with = bounds::path_schema)]
    #[serde(alias = "path", alias = "sandbox_path")]
    file_path: String,
    /// Where to, with a `PUT`: `http` or `https`, port 80, 443 or 1024 and above, a public address.
    #[serde(alias = "url")]
    presigned_url: String,
}

/// What was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sent {
    success: bool,
    /// How many bytes.
    size: u64,
    message: String,
}

/// Sends a file to a URL.
///
/// The server does a `PUT` with the file's content, only to a public address and without following redirects.
#[utoipa::path(post, path = "/sandboxes/download-to-presigned-url", operation_id = "download_to_presigned_url",
    tag = "files",
    request_body = ToUrlRequest,
    responses(
        (status = 200, description = "Sent", body = Sent)))]
pub(super) async fn download_to_presigned_url(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Body(request): Body<ToUrlRequest>,
) -> Result<Json<Sent>, ApiError> {
    bounds::path("file_path", &request.file_path)?;
    let url_client = app.url_client()?;
    let live = app
        .service()
        .live(&caller, sandbox_name(&request.sandbox_id)?)
        .await?;
    let file = live.agent.read_file(&request.file_path).await?;
    let size = file.size().ok_or_else(|| {
        ServiceError::new(
            ErrorKind::Invalid,
            "the file has no fixed size, so it cannot be sent",
        )
    })?;
    let content = OutgoingBody::wrap_stream(pieces_of(live, file));
    url_client
        .put("presigned_url", &request.presigned_url, size, content)
        .await?;
    Ok(Json(Sent {
        success: true,
        size,
        message: format!("{size} bytes of `{}` sent", request.file_path),
    }))
}
