//! Logins, users, API keys and the audit log. They require credentials even on an open listener, which grants access to
//! sandboxes only.

mod audit;
mod keys;
mod login;
mod users;
mod view;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

/// Longest body, in bytes. It is read before the caller is authenticated.
const MAX_BODY: usize = 16 << 10;

/// The routes of accounts.
pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Scope(Scope::Read);
    let manage = Access::Scope(Scope::Manage);
    let admin = Access::Scope(Scope::Admin);
    let own = vec![
        route(Access::Public, routes!(login::login)),
        route(Access::Public, routes!(login::login_enveloped)),
        route(Access::Public, routes!(login::refresh_login)),
        route(read, routes!(login::logout)),
        route(read, routes!(login::get_me)),
        route(read, routes!(keys::list_keys)),
        route(manage, routes!(keys::create_key)),
        route(manage, routes!(keys::revoke_key)),
        route(admin, routes!(users::list_users)),
        route(admin, routes!(users::create_user)),
        route(admin, routes!(users::get_user)),
        route(admin, routes!(users::change_user)),
        route(admin, routes!(users::delete_user)),
        route(admin, routes!(audit::list_audit)),
    ];
    own.into_iter()
        .map(|route| route.strict().with_max_body(Some(MAX_BODY)))
        .collect()
}
