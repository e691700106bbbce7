//! The Docker-style dialect: `/api/sandboxes/*`. Its tar streams are in `files/`.

mod create;
mod execute;
mod lifecycle;
mod lookup;
mod view;
mod workspace;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::need::Need;
use crate::router::{Mounted, mount};

/// The routes of this dialect.
pub(crate) fn routes() -> Vec<Mounted> {
    let read = Need::Scope(Scope::Read);
    let manage = Need::Scope(Scope::Manage);
    vec![
        mount(manage, routes!(create::create_container)),
        mount(read, routes!(lookup::list_containers)),
        mount(read, routes!(lookup::get_container)),
        mount(
            Need::Scope(Scope::Use),
            routes!(execute::execute_in_container),
        ),
        mount(manage, routes!(lifecycle::start_container)),
        mount(manage, routes!(lifecycle::stop_container)),
        mount(manage, routes!(lifecycle::clean_up_containers)),
        mount(manage, routes!(lifecycle::delete_container)),
    ]
}
