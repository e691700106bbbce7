//! `/users`: for admins.

use axum::extract::State;
use sandyard_auth::UserChange;
use sandyard_core::Role;
use sandyard_store::model::SandboxFilter;

use super::view::User;
use crate::app::App;
use crate::audit;
use crate::model::Done;
use crate::prelude::*;

/// Request to create a user.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateUser {
    /// Name of the user: 1–63 letters, digits, `.`, `_` and `-`, beginning with a letter or digit. `local` and `system`
    /// are reserved.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )]
    name: String,
    /// Password, 8–1024 characters. Default: none; the user cannot log in, but can have keys.
    #[schema(min_length = 8, max_length = 1024, pattern = r"^[^\u0000]+$")]
    password: Option<String>,
    /// Role of the user (default `user`).
    role: Option<Role>,
    /// Maximum number of sandboxes.
    #[schema(schema_with = bounds::count_schema)]
    max_sandboxes: Option<BoundedInt<0, 1_000_000>>,
}

/// All users.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserList {
    /// Users, sorted by name.
    users: Vec<User>,
}

/// List users
///
/// Returns all users, sorted by name. Requires the scope `admin`.
#[utoipa::path(
    get, path = "/users", tag = "accounts",
    responses((status = 200, description = "Users returned.", body = UserList))
)]
pub(crate) async fn list_users(State(app): State<App>) -> Reply<UserList> {
    let users = app.auth().list_users().await?;
    let users = users.into_iter().map(User::from).collect();
    Ok(Json(UserList { users }))
}

/// Create a user
///
/// Creates a user account. Without a password the user cannot log in, but can have API keys. Requires the scope
/// `admin`.
#[utoipa::path(
    post, path = "/users", tag = "accounts", request_body = CreateUser,
    responses((status = 200, description = "User created.", body = User))
)]
pub(crate) async fn create_user(call: Call, Body(request): Body<CreateUser>) -> Reply<User> {
    bounds::text("name", &request.name, 1, 63)?;
    bounds::optional_text("password", request.password.as_deref(), 8, 1024)?;
    audit::note_target(&request.name);
    let created = call.app.auth().create_user(
        &request.name,
        request.password.as_deref(),
        request.role.unwrap_or(Role::User),
        request.max_sandboxes.map(|count| count.0),
    );
    Ok(Json(created.await?.into()))
}

/// Get a user
///
/// Returns one user account. Requires the scope `admin`.
#[utoipa::path(
    get, path = "/users/{name}", tag = "accounts",
    params(("name" = String, Path, description = "Name of the user.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "User returned.", body = User))
)]
pub(crate) async fn get_user(State(app): State<App>, PathName(name): PathName) -> Reply<User> {
    Ok(Json(app.auth().user(&name).await?.into()))
}

/// Changes to a user. A field that is left out stays as it is.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ChangeUser {
    /// New password, 8–1024 characters. Ends all logins of the user.
    #[schema(min_length = 8, max_length = 1024, pattern = r"^[^\u0000]+$")]
    password: Option<String>,
    /// New role of the user.
    role: Option<Role>,
    /// Whether to disable the account: the user can then neither log in nor use keys.
    disabled: Option<bool>,
    /// Maximum number of sandboxes.
    #[schema(schema_with = bounds::count_schema)]
    max_sandboxes: Option<BoundedInt<0, 1_000_000>>,
}

/// Change a user
///
/// Changes the password, role, quota or status of a user; fields that are left out stay as they are. A new password
/// ends all logins of the user. The last enabled admin cannot be disabled or demoted. Requires the scope `admin`.
#[utoipa::path(
    patch, path = "/users/{name}", tag = "accounts",
    params(("name" = String, Path, description = "Name of the user.", min_length = 1, max_length = 128)),
    request_body = ChangeUser,
    responses((status = 200, description = "User changed.", body = User))
)]
pub(crate) async fn change_user(
    call: Call,
    PathName(name): PathName,
    Body(request): Body<ChangeUser>,
) -> Reply<User> {
    bounds::optional_text("password", request.password.as_deref(), 8, 1024)?;
    let change = UserChange {
        role: request.role,
        is_disabled: request.disabled,
        max_sandboxes: request.max_sandboxes.map(|count| Some(count.0)),
    };
    let user = call.app.auth().update_user(&name, &change).await?;
    if let Some(password) = &request.password {
        call.app.auth().set_password(&name, password).await?;
        return Ok(Json(call.app.auth().user(&name).await?.into()));
    }
    Ok(Json(user.into()))
}

/// Delete a user
///
/// Deletes a user with all keys and logins. Fails with 409 while the user owns sandboxes or volumes, because a later
/// user of the same name would get them. Requires the scope `admin`.
#[utoipa::path(
    delete, path = "/users/{name}", tag = "accounts",
    params(("name" = String, Path, description = "Name of the user.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "User deleted.", body = Done))
)]
pub(crate) async fn delete_user(call: Call, PathName(name): PathName) -> Reply<Done> {
    let user = call.app.auth().user(&name).await?;
    let filter = SandboxFilter {
        owner: Some(user.name),
        limit: 1,
        ..SandboxFilter::default()
    };
    if !call
        .service()
        .list(&call.caller, filter)
        .await?
        .items
        .is_empty()
    {
        return Err(ApiError::new(
            ErrorKind::Conflict,
            format!("user `{name}` still has sandboxes"),
        )
        .hint("delete them first, or disable the user"));
    }
    if call.service().has_volumes(&name).await? {
        return Err(ApiError::new(
            ErrorKind::Conflict,
            format!("user `{name}` still has volumes"),
        )
        .hint("delete them first (GET /volumes?user_id= lists them), or disable the user"));
    }
    call.app.auth().delete_user(&name).await?;
    Ok(Json(Done::new(format!("User {name} deleted"))))
}
