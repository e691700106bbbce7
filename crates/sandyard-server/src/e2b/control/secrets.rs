//! `/secrets`: not supported in this dialect.
//!
//! A secret of E2B may be sent to any host that a rule names. Secrets of this server are bound to hosts when they are stored, and E2B's
//! calls have no field for hosts. So every call fails, with a hint to the native API.

use sandyard_core::ErrorKind;

use crate::error::{ApiError, Reply};

/// A result that is always an error.
type Unsupported = Reply<[(); 0]>;

fn unsupported() -> Unsupported {
    Err(ApiError::new(
        ErrorKind::Unsupported,
        "E2B's API cannot store secrets here: it does not name the hosts that may get a secret",
    )
    .hint("use `sandyard secret` or PUT /secrets/{name} of the native API, which binds the secret to hosts"))
}

/// List secrets (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `GET /secrets` instead.
#[utoipa::path(
    get, path = "/e2b/secrets", tag = "e2b",
    responses((status = 200, description = "Never returned."))
)]
pub(crate) async fn e2b_list_secrets() -> Unsupported {
    unsupported()
}

/// Create a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `PUT /secrets/{name}` instead.
#[utoipa::path(
    post, path = "/e2b/secrets", tag = "e2b",
    responses((status = 201, description = "Never returned."))
)]
pub(crate) async fn e2b_create_secret() -> Unsupported {
    unsupported()
}

/// Get a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `GET /secrets` instead.
#[utoipa::path(
    get, path = "/e2b/secrets/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name of the secret.")),
    responses((status = 200, description = "Never returned."))
)]
pub(crate) async fn e2b_get_secret() -> Unsupported {
    unsupported()
}

/// Update a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `PUT /secrets/{name}` instead.
#[utoipa::path(
    post, path = "/e2b/secrets/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name of the secret.")),
    responses((status = 200, description = "Never returned."))
)]
pub(crate) async fn e2b_update_secret() -> Unsupported {
    unsupported()
}

/// Delete a secret (not supported)
///
/// Always fails: E2B's secrets are not supported. Use `DELETE /secrets/{name}` instead.
#[utoipa::path(
    delete, path = "/e2b/secrets/{name}", tag = "e2b",
    params(("name" = String, Path, description = "Name of the secret.")),
    responses((status = 204, description = "Never returned."))
)]
pub(crate) async fn e2b_delete_secret() -> Unsupported {
    unsupported()
}
