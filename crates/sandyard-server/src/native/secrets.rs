//! `GET /secrets`, `PUT` and `DELETE /secrets/{name}`: secrets that sandboxes use without seeing them.

use sandyard_core::bounds::{MAX_SECRET_BYTES, MAX_SECRET_HOSTS};
use sandyard_core::network::{BoundHost, BoundHostError, SecretText};
use sandyard_service::{SecretInfo, SecretRequest};

use crate::model::Done;
use crate::model::network::invalid_entry;
use crate::prelude::*;

/// Secret to store.
#[derive(Deserialize, ToSchema)]
pub(crate) struct PutSecret {
    /// Value of the secret, 1–8192 visible ASCII characters. It is never returned.
    #[schema(min_length = 1, max_length = 8192, pattern = r"^[!-~]+$", write_only)]
    value: String,
    /// Hosts that may receive the secret: `api.example.com` or `*.example.com`, with or without `:port`. The secret is
    /// sent over TLS only, unless the host is written `http://registry.internal`.
    #[schema(min_items = 1, max_items = 64)]
    hosts: Vec<String>,
    /// Text that stands for the secret inside sandboxes, 8–200 visible ASCII characters. Default: made from the name.
    #[schema(min_length = 8, max_length = 200, pattern = r"^[!-~]+$")]
    placeholder: Option<String>,
    /// Whether every user may use the secret (default false). Only an admin may set it.
    is_shared: Option<bool>,
}

impl PutSecret {
    fn into_request(self, name: String) -> ApiResult<SecretRequest> {
        bounds::text("value", &self.value, 1, MAX_SECRET_BYTES)?;
        bounds::optional_text("placeholder", self.placeholder.as_deref(), 8, 200)?;
        if self.hosts.is_empty() || self.hosts.len() > MAX_SECRET_HOSTS {
            let problem = format!(
                "`hosts` must list 1 to {MAX_SECRET_HOSTS} hosts that may receive the secret"
            );
            return Err(invalid_entry("hosts".to_owned(), problem));
        }
        let read = |(at, text): (usize, &String)| {
            text.parse().map_err(|error: BoundHostError| {
                invalid_entry(format!("hosts[{at}]"), error.to_string())
            })
        };
        let hosts: ApiResult<Vec<BoundHost>> = self.hosts.iter().enumerate().map(read).collect();
        Ok(SecretRequest {
            name,
            value: SecretText::new(self.value),
            hosts: hosts?,
            placeholder: self.placeholder,
            is_shared: self.is_shared.unwrap_or(false),
        })
    }
}

/// Secret without its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecretView {
    /// Name of the secret.
    name: String,
    /// User who owns the secret.
    owner: String,
    /// Hosts that may receive the secret.
    hosts: Vec<String>,
    /// Text that stands for the secret inside sandboxes.
    placeholder: String,
    /// Whether every user may use the secret.
    is_shared: bool,
    /// Time at which the secret was created (RFC 3339).
    created_at: String,
    /// Time at which the secret was last changed (RFC 3339).
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

/// Secrets that the caller may use.
#[derive(Serialize, ToSchema)]
pub(crate) struct SecretList {
    /// Secrets, sorted by name.
    secrets: Vec<SecretView>,
}

/// List secrets
///
/// Returns the secrets that the caller may use, sorted by name. Values are never returned.
#[utoipa::path(
    get, path = "/secrets", tag = "network",
    responses((status = 200, description = "Secrets returned.", body = SecretList))
)]
pub(crate) async fn list_secrets(call: Call) -> Reply<SecretList> {
    let secrets = call.service().secrets(&call.caller).await?;
    let secrets = secrets.into_iter().map(SecretView::from).collect();
    Ok(Json(SecretList { secrets }))
}

/// Create or replace a secret
///
/// Stores a secret under a name, or replaces the one that has the name. Sandboxes that use the secret use the new value
/// at once. A sandbox never sees the value: its environment holds the placeholder, and the egress gateway puts the
/// value into requests to `hosts`.
#[utoipa::path(
    put, path = "/secrets/{name}", tag = "network",
    params(("name" = String, Path, description = "Name of the secret, 1–64 letters, digits, `-` and `_`.", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")),
    request_body = PutSecret,
    responses((status = 200, description = "Secret stored.", body = SecretView))
)]
pub(crate) async fn put_secret(
    call: Call,
    PathName(name): PathName,
    Body(secret): Body<PutSecret>,
) -> Reply<SecretView> {
    let request = secret.into_request(name)?;
    let secret = call.service().put_secret(&call.caller, request).await?;
    Ok(Json(secret.into()))
}

/// Delete a secret
///
/// Deletes a secret. Sandboxes that use it send the placeholder from then on.
#[utoipa::path(
    delete, path = "/secrets/{name}", tag = "network",
    params(("name" = String, Path, description = "Name of the secret, 1–64 letters, digits, `-` and `_`.", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")),
    responses((status = 200, description = "Secret deleted.", body = Done))
)]
pub(crate) async fn delete_secret(call: Call, PathName(name): PathName) -> Reply<Done> {
    call.service().delete_secret(&call.caller, &name).await?;
    Ok(Json(Done::new(format!("Secret {name} deleted"))))
}
