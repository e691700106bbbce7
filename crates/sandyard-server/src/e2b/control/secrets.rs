//! `/secrets`: what E2B keeps for its own gateway to fill in.
//!
//! A secret of E2B's may go wherever a rule of any sandbox sends it. Ours are bound to hosts when they are kept, and E2B's
//! calls have no place for those; so nothing is kept here, and whoever asks is told where to.

use axum::Json;
use sandyard_core::ErrorKind;

use crate::error::ApiError;

/// Nothing: no secret can be kept here.
type Never = Result<Json<[(); 0]>, ApiError>;

fn not_here() -> Never {
    Err(ApiError::new(
        ErrorKind::Unsupported,
        "secrets are not kept through E2B's calls: they do not say which hosts a secret may go to",
    )
    .hint("keep it with `sandyard secret` or PUT /secrets/{name} of the native API, which binds it to hosts"))
}

/// List secrets (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `GET /secrets` instead.
#[utoipa::path(
    get, path = "/e2b/secrets", operation_id = "e2b_list_secrets", tag = "e2b",
    responses((status = 200, description = "Never returned."))
)]
pub(crate) async fn e2b_list_secrets() -> Never {
    not_here()
}

/// Create a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `PUT /secrets/{name}` instead.
#[utoipa::path(
    post, path = "/e2b/secrets", operation_id = "e2b_create_secret", tag = "e2b",
    responses((status = 201, description = "Never returned."))
)]
pub(crate) async fn e2b_create_secret() -> Never {
    not_here()
}

/// Get a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `GET /secrets` instead.
#[utoipa::path(
    get, path = "/e2b/secrets/{name}", operation_id = "e2b_get_secret", tag = "e2b",
    params(("name" = String, Path, description = "Name of the secret.")),
    responses((status = 200, description = "Never returned."))
)]
pub(crate) async fn e2b_get_secret() -> Never {
    not_here()
}

/// Update a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `PUT /secrets/{name}` instead.
#[utoipa::path(
    post, path = "/e2b/secrets/{name}", operation_id = "e2b_update_secret", tag = "e2b",
    params(("name" = String, Path, description = "Name of the secret.")),
    responses((status = 200, description = "Never returned."))
)]
pub(crate) async fn e2b_update_secret() -> Never {
    not_here()
}

/// Delete a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `DELETE /secrets/{name}` instead.
#[utoipa::path(
    delete, path = "/e2b/secrets/{name}", operation_id = "e2b_delete_secret", tag = "e2b",
    params(("name" = String, Path, description = "Name of the secret.")),
    responses((status = 204, description = "Never returned."))
)]
pub(crate) async fn e2b_delete_secret() -> Never {
    not_here()
}
