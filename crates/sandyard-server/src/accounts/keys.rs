//! `/keys`: a user's own keys, and all keys for admins.

use sandyard_auth::may_create_key;
use sandyard_core::Scope;

use super::view::Key;
use crate::audit;
use crate::model::Done;
use crate::prelude::*;

/// Request to create an API key.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateKey {
    /// Name of the key, 1–100 characters.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"^[^\u0000-\u001f\u007f]+$"
    )]
    name: String,
    /// User whom the key belongs to. Only an admin may name another user. Default: the caller.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )]
    user: Option<String>,
    /// Operations that the key permits. Default: those of the request's credentials.
    #[schema(max_items = 4)]
    scopes: Option<Vec<Scope>>,
    /// Lifetime in seconds.
    #[schema(schema_with = bounds::key_life_schema)]
    expires_in: Option<BoundedInt<1, 3_153_600_000>>,
}

/// API key that was created. The key itself is shown only here.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewKeyReply {
    /// The API key itself.
    key: String,
    #[serde(flatten)]
    about: Key,
}

/// Create an API key
///
/// Creates an API key and returns it. The response is the only place where the key is shown: store it. Send it in
/// `X-API-Key` or `Authorization: Bearer`.
#[utoipa::path(
    post, path = "/keys", tag = "accounts", request_body = CreateKey,
    responses((status = 200, description = "API key created.", body = NewKeyReply))
)]
pub(crate) async fn create_key(call: Call, Body(request): Body<CreateKey>) -> Reply<NewKeyReply> {
    bounds::text("name", &request.name, 1, 100)?;
    bounds::optional_text("user", request.user.as_deref(), 1, 63)?;
    let owner = request.user.unwrap_or_else(|| call.caller.name.clone());
    let scopes = match request.scopes {
        Some(scopes) if !scopes.is_empty() => scopes,
        _ => default_scopes(&call, &owner).await,
    };
    may_create_key(&call.caller, &owner, &scopes)?;
    let now_ms = call.service().clock().now_ms();
    let expires_ms = request.expires_in.map(|seconds| now_ms + seconds.0 * 1000);
    let created = call
        .app
        .auth()
        .create_key(&owner, &request.name, &scopes, expires_ms)
        .await?;
    audit::note_target(&created.key.id);
    Ok(Json(NewKeyReply {
        key: created.secret,
        about: created.key.into(),
    }))
}

/// All scopes that the caller may grant and the owner may have.
async fn default_scopes(call: &Call, owner: &str) -> Vec<Scope> {
    let owner = call.app.auth().user(owner).await;
    let is_admin = owner.is_ok_and(|owner| owner.role == sandyard_core::Role::Admin);
    Scope::ALL
        .into_iter()
        .filter(|scope| call.caller.has(*scope) && (is_admin || *scope != Scope::Admin))
        .collect()
}

/// Query of a list of keys.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyQuery {
    /// Return only keys of this user. Only admins may name another user. Default: the caller; for admins, all users.
    #[param(min_length = 1, max_length = 63)]
    user: Option<String>,
}

/// API keys, without the keys themselves.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyList {
    /// API keys, newest first.
    keys: Vec<Key>,
}

/// List API keys
///
/// Returns the caller's API keys, newest first; an admin sees those of all users. The keys themselves are not returned.
#[utoipa::path(
    get, path = "/keys", tag = "accounts", params(KeyQuery),
    responses((status = 200, description = "API keys returned.", body = KeyList))
)]
pub(crate) async fn list_keys(call: Call, Query(query): Query<KeyQuery>) -> Reply<KeyList> {
    bounds::optional_text("user", query.user.as_deref(), 1, 63)?;
    let owner = match call.caller.has(Scope::Admin) {
        true => query.user,
        false => Some(call.caller.name),
    };
    let keys = call.app.auth().list_keys(owner.as_deref()).await?;
    let keys = keys.into_iter().map(Key::from).collect();
    Ok(Json(KeyList { keys }))
}

/// Revoke an API key
///
/// Revokes an API key. Requests with it fail from then on.
#[utoipa::path(
    delete, path = "/keys/{name}", tag = "accounts",
    params(("name" = String, Path, description = "ID of the key.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "API key revoked.", body = Done))
)]
pub(crate) async fn revoke_key(call: Call, PathName(id): PathName) -> Reply<Done> {
    let owner = (!call.caller.has(Scope::Admin)).then_some(call.caller.name.as_str());
    call.app.auth().revoke_key(&id, owner).await?;
    Ok(Json(Done::new(format!("Key {id} revoked"))))
}
