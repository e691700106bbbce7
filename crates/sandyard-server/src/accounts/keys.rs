//! `/keys`: everybody's own, and everybody else's for admins.

use axum::Json;
use axum::extract::State;
use sandyard_auth::may_create_key;
use sandyard_core::{Caller, Scope};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::view::{Key, ScopeWord};
use crate::access::Authenticated;
use crate::app::App;
use crate::audit;
use crate::bounds::{self, Whole};
use crate::error::{ApiError, from_auth};
use crate::extract::{Body, PathName, Query};
use crate::model::Done;

/// A key to be made.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateKey {
    /// What its owner calls it.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = r"^[^\u0000-\u001f\u007f]+$"
    )]
    name: String,
    /// Whose; only an admin may name somebody else.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )]
    user: Option<String>,
    /// What it may be used for; left out: all that these credentials may be used for.
    #[schema(max_items = 4)]
    scopes: Option<Vec<ScopeWord>>,
    /// Seconds until it ends; left out: never.
    #[schema(schema_with = bounds::key_life_schema)]
    expires_in: Option<Whole<1, 3_153_600_000>>,
}

/// A key that was just made: the only time it is shown.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewKeyReply {
    /// The key itself.
    key: String,
    #[serde(flatten)]
    about: Key,
}

/// Makes a key and shows it this once.
#[utoipa::path(
    post, path = "/keys", operation_id = "create_key", tag = "accounts",
    request_body = CreateKey,
    responses((status = 200, description = "The key.", body = NewKeyReply))
)]
pub(crate) async fn create_key(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Body(request): Body<CreateKey>,
) -> Result<Json<NewKeyReply>, ApiError> {
    bounds::text("name", &request.name, 1, 100)?;
    bounds::optional_text("user", request.user.as_deref(), 1, 63)?;
    let owner = request.user.unwrap_or_else(|| caller.name.clone());
    let scopes = match request.scopes {
        Some(words) if !words.is_empty() => words.into_iter().map(Scope::from).collect(),
        _ => default_scopes(&app, &caller, &owner).await,
    };
    may_create_key(&caller, &owner, &scopes).map_err(from_auth)?;
    let now_ms = app.service().clock().now_ms();
    let expires_ms = request.expires_in.map(|seconds| now_ms + seconds.0 * 1000);
    let created = app
        .auth()
        .create_key(&owner, &request.name, &scopes, expires_ms)
        .await
        .map_err(from_auth)?;
    audit::note_target(&created.key.id);
    Ok(Json(NewKeyReply {
        key: created.secret,
        about: created.key.into(),
    }))
}

/// All that the caller may give and the owner may have.
async fn default_scopes(app: &App, caller: &Caller, owner: &str) -> Vec<Scope> {
    let owner = app.auth().user(owner).await;
    let is_admin = owner.is_ok_and(|owner| owner.role == sandyard_core::Role::Admin);
    Scope::ALL
        .into_iter()
        .filter(|scope| caller.has(*scope) && (is_admin || *scope != Scope::Admin))
        .collect()
}

/// Whose keys.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyQuery {
    /// Whose; for admins. Left out: an admin sees everybody's.
    #[param(min_length = 1, max_length = 63)]
    user: Option<String>,
}

/// Keys, without the keys.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyList {
    keys: Vec<Key>,
}

/// Lists keys, newest first: one's own, or everybody's for an admin.
#[utoipa::path(
    get, path = "/keys", operation_id = "list_keys", tag = "accounts",
    params(KeyQuery),
    responses((status = 200, description = "They.", body = KeyList))
)]
pub(crate) async fn list_keys(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<KeyQuery>,
) -> Result<Json<KeyList>, ApiError> {
    bounds::optional_text("user", query.user.as_deref(), 1, 63)?;
    let owner = match caller.has(Scope::Admin) {
        true => query.user,
        false => Some(caller.name),
    };
    let keys = app
        .auth()
        .list_keys(owner.as_deref())
        .await
        .map_err(from_auth)?;
    let keys = keys.into_iter().map(Key::from).collect();
    Ok(Json(KeyList { keys }))
}

/// Revokes a key.
#[utoipa::path(
    delete, path = "/keys/{name}", operation_id = "revoke_key", tag = "accounts",
    params(("name" = String, Path, description = "The key's id.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It is worthless.", body = Done))
)]
pub(crate) async fn revoke_key(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PathName(id): PathName,
) -> Result<Json<Done>, ApiError> {
    let owner = (!caller.has(Scope::Admin)).then_some(caller.name.as_str());
    app.auth().revoke_key(&id, owner).await.map_err(from_auth)?;
    Ok(Json(Done::new(format!("Key {id} revoked"))))
}
