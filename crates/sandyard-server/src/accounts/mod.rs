//! Login, users, keys, audit. Always with credentials: an open listener gives sandboxes away, not rights.

mod audit;
mod keys;
mod login;
mod users;
mod view;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::need::Need;
use crate::router::{Mounted, mount};

/// The longest body: nobody has to say who they are before it is read.
const MAX_BODY: usize = 16 << 10;

/// The routes of accounts.
pub(crate) fn routes() -> Vec<Mounted> {
    let read = Need::Scope(Scope::Read);
    let manage = Need::Scope(Scope::Manage);
    let admin = Need::Scope(Scope::Admin);
    let own = vec![
        mount(Need::Nothing, routes!(login::login)),
        mount(Need::Nothing, routes!(login::login_enveloped)),
        mount(Need::Nothing, routes!(login::refresh_login)),
        mount(read, routes!(login::logout)),
        mount(read, routes!(login::get_me)),
        mount(read, routes!(keys::list_keys)),
        mount(manage, routes!(keys::create_key)),
        mount(manage, routes!(keys::revoke_key)),
        mount(admin, routes!(users::list_users)),
        mount(admin, routes!(users::create_user)),
        mount(admin, routes!(users::get_user)),
        mount(admin, routes!(users::change_user)),
        mount(admin, routes!(users::delete_user)),
        mount(admin, routes!(audit::list_audit)),
    ];
    own.into_iter()
        .map(|mounted| mounted.strict().with_max_body(Some(MAX_BODY)))
        .collect()
}
