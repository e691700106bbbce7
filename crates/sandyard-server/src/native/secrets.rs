//! `GET /secrets`, `PUT` and `DELETE /secrets/{name}`: secrets that sandboxes use without seeing them.

use axum::Json;
use axum::extract::State;
use sandyard_core::network::{BoundHost, BoundHostError, SecretText};
use sandyard_service::{SecretInfo, SecretRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, PathName};
use crate::model::Done;
use crate::model::network::refused;
use crate::time::iso;

/// Most bytes of a secret.
const MAX_VALUE: usize = 8 << 10;
/// Most hosts of one.
const MAX_HOSTS: usize = 64;

/// A secret to be kept. Its value is never shown again.
#[derive(Deserialize, ToSchema)]
pub(crate) struct PutSecret {
    /// What is kept.
    #[schema(min_length = 1, max_length = 8192, pattern = r"^[!-~]+$", write_only)]
    value: String,
    /// Where it may go, and nowhere else: `api.example.com`, `*.example.com`, with or without `:port`; over TLS alone, unless
    /// written `http://registry.internal`.
    #[schema(min_items = 1, max_items = 64)]
    hosts: Vec<String>,
    /// What sandboxes have in its place; made from its name if it is left out.
    #[schema(min_length = 8, max_length = 200, pattern = r"^[!-~]+$")]
    placeholder: Option<String>,
    /// Whether every user may use it; only an admin may say so.
    is_shared: Option<bool>,
}

impl PutSecret {
    fn into_request(self, name: String) -> Result<SecretRequest, ApiError> {
        bounds::text("value", &self.value, 1, MAX_VALUE)?;
        bounds::optional_text("placeholder", self.placeholder.as_deref(), 8, 200)?;
        if self.hosts.is_empty() || self.hosts.len() > MAX_HOSTS {
            let problem = format!("name 1 to {MAX_HOSTS} hosts that the secret may go to");
            return Err(refused("hosts".to_owned(), problem));
        }
        let read = |(at, text): (usize, &String)| {
            text.parse()
                .map_err(|error: BoundHostError| refused(format!("hosts[{at}]"), error.to_string()))
        };
        let hosts: Result<Vec<BoundHost>, ApiError> =
            self.hosts.iter().enumerate().map(read).collect();
        Ok(SecretRequest {
            name,
            value: SecretText::new(self.value),
            hosts: hosts?,
            placeholder: self.placeholder,
            is_shared: self.is_shared.unwrap_or(false),
        })
    }
}

/// What can be told of a secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecretView {
    name: String,
    /// Whose it is.
    owner: String,
    /// Where it may go, and nowhere else.
    hosts: Vec<String>,
    /// What sandboxes have in its place.
    placeholder: String,
    /// Whether every user may use it.
    is_shared: bool,
    created_at: String,
    updated_at: String,
}

impl From<SecretInfo> for SecretView {
    fn from(secret: SecretInfo) -> Self {
        Self {
            name: secret.name,
            owner: secret.owner,
            hosts: secret.hosts.into_iter().map(String::from).collect(),
            placeholder: secret.placeholder,
            is_shared: secret.is_shared,
            created_at: iso(secret.created_ms),
            updated_at: iso(secret.updated_ms),
        }
    }
}

/// The secrets a caller may use.
#[derive(Serialize, ToSchema)]
pub(crate) struct SecretList {
    /// By name.
    secrets: Vec<SecretView>,
}

/// Lists the secrets the caller may use, without their values.
#[utoipa::path(
    get, path = "/secrets", operation_id = "list_secrets", tag = "network",
    responses((status = 200, description = "They.", body = SecretList))
)]
pub(crate) async fn list_secrets(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
) -> Result<Json<SecretList>, ApiError> {
    let secrets = app.service().secrets(&caller).await?;
    let secrets = secrets.into_iter().map(SecretView::from).collect();
    Ok(Json(SecretList { secrets }))
}

/// Keeps a secret, or changes the one of this name. Sandboxes that use it have the new value at once.
#[utoipa::path(
    put, path = "/secrets/{name}", operation_id = "put_secret", tag = "network",
    params(("name" = String, Path, description = "The secret.", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")),
    request_body = PutSecret,
    responses((status = 200, description = "It is kept.", body = SecretView))
)]
pub(crate) async fn put_secret(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
    Body(secret): Body<PutSecret>,
) -> Result<Json<SecretView>, ApiError> {
    let request = secret.into_request(name)?;
    let secret = app.service().put_secret(&caller, request).await?;
    Ok(Json(secret.into()))
}

/// Forgets a secret. Sandboxes that use it cannot any more.
#[utoipa::path(
    delete, path = "/secrets/{name}", operation_id = "delete_secret", tag = "network",
    params(("name" = String, Path, description = "The secret.", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")),
    responses((status = 200, description = "It is gone.", body = Done))
)]
pub(crate) async fn delete_secret(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(name): PathName,
) -> Result<Json<Done>, ApiError> {
    app.service().delete_secret(&caller, &name).await?;
    Ok(Json(Done::new(format!("Secret {name} deleted"))))
}
