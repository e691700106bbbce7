//! `/api/v1/auth/*`: log in, refresh, log out, current user.

use axum::extract::{FromRequest, Request, State};
use sandyard_auth::Tokens;
use sandyard_core::{Role, Scope};

use super::view::User;
use crate::app::App;
use crate::audit;
use crate::extract::{media_type, small_body};
use crate::model::Done;
use crate::prelude::*;

/// Longest body of a login, in bytes.
const MAX_LOGIN: usize = 16 << 10;

/// Name and password of a user.
#[derive(Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
pub(crate) struct Login {
    /// Name of the user.
    #[param(min_length = 1, max_length = 255)]
    #[schema(min_length = 1, max_length = 255)]
    username: Option<String>,
    /// Password of the user.
    #[param(min_length = 1, max_length = 1024)]
    #[schema(min_length = 1, max_length = 1024)]
    password: Option<String>,
}

/// Tokens of a login.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoginReply {
    /// Token for the header `Authorization: Bearer`.
    access_token: String,
    /// Always `bearer`.
    token_type: &'static str,
    /// Token for `POST /api/v1/auth/refresh`. It can be used once.
    refresh_token: String,
    /// Lifetime of the access token in seconds.
    expires_in: i64,
    /// User who logged in.
    user: User,
}

impl LoginReply {
    fn new(app: &App, tokens: Tokens) -> Self {
        let left_ms = tokens.expires_ms - app.service().clock().now_ms();
        Self {
            access_token: tokens.access_token,
            token_type: "bearer",
            refresh_token: tokens.refresh_token,
            expires_in: (left_ms / 1000).max(0),
            user: tokens.user.into(),
        }
    }
}

/// Log in with a form
///
/// Checks a user's name and password and returns tokens. Name and password may be sent in the query, as a form, or as
/// JSON. After five wrong passwords in a row the user name is locked for five minutes (`auth.lockout_failures`,
/// `auth.lockout_period`).
#[utoipa::path(
    post, path = "/api/v1/auth/login/swagger", tag = "accounts", params(Login),
    request_body(content((Option<Login> = "application/json"), (Login = "application/x-www-form-urlencoded"))),
    responses((status = 200, description = "Login succeeded; tokens returned.", body = LoginReply))
)]
pub(crate) async fn login(
    State(app): State<App>,
    Query(query): Query<Login>,
    request: Request,
) -> Reply<LoginReply> {
    let body = if query.username.is_some() && query.password.is_some() {
        Login::default()
    } else {
        body_of(request).await?
    };
    log_in(
        &app,
        query.username.or(body.username),
        query.password.or(body.password),
    )
    .await
}

/// Name and password of a user.
#[derive(Deserialize, ToSchema)]
pub(crate) struct LoginBody {
    /// Name of the user.
    #[schema(min_length = 1, max_length = 255)]
    username: String,
    /// Password of the user.
    #[schema(min_length = 1, max_length = 1024)]
    password: String,
}

/// Log in
///
/// Checks a user's name and password and returns tokens: an access token for `Authorization: Bearer`, and a refresh
/// token for `POST /api/v1/auth/refresh`. After five wrong passwords in a row the user name is locked for five minutes
/// (`auth.lockout_failures`, `auth.lockout_period`).
#[utoipa::path(
    post, path = "/api/v1/auth/login", tag = "accounts", request_body = LoginBody,
    responses((status = 200, description = "Login succeeded; tokens returned.", body = LoginReply))
)]
pub(crate) async fn login_enveloped(
    State(app): State<App>,
    Body(body): Body<LoginBody>,
) -> Reply<LoginReply> {
    log_in(&app, Some(body.username), Some(body.password)).await
}

async fn log_in(
    app: &App,
    username: Option<String>,
    password: Option<String>,
) -> Reply<LoginReply> {
    let (Some(username), Some(password)) = (username, password) else {
        return Err(
            ApiError::new(ErrorKind::Unauthenticated, "name or password is missing").hint(
                "send `username` and `password` in the query, or in the body as a form or JSON",
            ),
        );
    };
    let length = |field, text: &str, most| match text.chars().count() {
        count if (1..=most).contains(&count) => Ok(()),
        _ => Err(ServiceError::invalid(
            field,
            format!("`{field}` has 1 to {most} characters"),
        )),
    };
    length("username", &username, 255)?;
    length("password", &password, 1024)?;
    // The field may contain anything, even a password by mistake; only names of existing users go to the audit log.
    if app.auth().user(&username).await.is_ok() {
        audit::note_target(&username);
    }
    let tokens = app.auth().login(&username, &password).await;
    Ok(Json(LoginReply::new(app, tokens?)))
}

async fn body_of(request: Request) -> ApiResult<Login> {
    let (parts, body) = request.into_parts();
    let bytes = small_body(body, MAX_LOGIN, None).await?;
    if bytes.is_empty() {
        return Ok(Login::default());
    }
    let media = media_type(&parts.headers);
    let request = Request::from_parts(parts, axum::body::Body::from(bytes));
    match media.as_str() {
        "application/x-www-form-urlencoded" => axum::Form::from_request(request, &())
            .await
            .map(|axum::Form(login)| login)
            .map_err(|error| ApiError::new(ErrorKind::Invalid, error.body_text())),
        _ => {
            let Body(login) = Body::<Option<Login>>::from_request(request, &()).await?;
            Ok(login.unwrap_or_default())
        }
    }
}

/// Refresh token of a login.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Refresh {
    /// Refresh token of the last login or refresh.
    #[schema(min_length = 1, max_length = 1024)]
    refresh_token: String,
}

/// Refresh a login
///
/// Exchanges a refresh token for a new pair of tokens. A refresh token can be used once.
#[utoipa::path(
    post, path = "/api/v1/auth/refresh", tag = "accounts", request_body = Refresh,
    responses((status = 200, description = "New tokens returned.", body = LoginReply))
)]
pub(crate) async fn refresh_login(
    State(app): State<App>,
    Body(body): Body<Refresh>,
) -> Reply<LoginReply> {
    bounds::text("refresh_token", &body.refresh_token, 1, 1024)?;
    let tokens = app.auth().refresh(&body.refresh_token).await;
    Ok(Json(LoginReply::new(&app, tokens?)))
}

/// Log out
///
/// Ends the login that the access token belongs to. Its tokens are invalid from then on.
#[utoipa::path(
    post, path = "/api/v1/auth/logout", tag = "accounts",
    responses((status = 200, description = "Logged out.", body = Done))
)]
pub(crate) async fn logout(call: Call) -> Reply<Done> {
    call.app.auth().logout(&call.caller).await?;
    Ok(Json(Done::new("Logged out")))
}

/// User and permissions of the request's credentials.
#[derive(Serialize, ToSchema)]
pub(crate) struct Me {
    /// Name of the user.
    name: String,
    /// Same as `name`.
    username: String,
    /// Role of the user.
    role: Role,
    /// Operations that the credentials permit.
    scopes: Vec<Scope>,
    /// Kind and ID of the credentials: `session:…` or `key:…`.
    via: String,
}

/// Get the current user
///
/// Returns the user whose credentials the request carries, and what they permit.
#[utoipa::path(
    get, path = "/api/v1/auth/me", tag = "accounts",
    responses((status = 200, description = "Current user returned.", body = Me))
)]
pub(crate) async fn get_me(call: Call) -> Json<Me> {
    let caller = call.caller;
    Json(Me {
        username: caller.name.clone(),
        name: caller.name,
        role: caller.role,
        scopes: caller.scopes,
        via: caller.via,
    })
}
