//! The Docker-style dialect: `/api/sandboxes/*`. Its tar streams are in `files/`.

mod create;
mod execute;
mod lifecycle;
mod lookup;
mod view;
mod workspace;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

/// The routes of this dialect.
pub(crate) fn routes() -> Vec<Route> {
    let used = Access::Scope(Scope::Use);
    let read = Access::Scope(Scope::Read);
    let manage = Access::Scope(Scope::Manage);
    vec![
        route(manage, routes!(create::create_container)),
        route(read, routes!(lookup::list_containers)),
        route(read, routes!(lookup::get_container)),
        route(used, routes!(execute::execute_in_container)),
        route(manage, routes!(lifecycle::start_container)),
        route(manage, routes!(lifecycle::stop_container)),
        route(manage, routes!(lifecycle::clean_up_containers)),
        route(manage, routes!(lifecycle::delete_container)),
    ]
}
