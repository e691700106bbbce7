//! What operators and monitoring ask of the server: `GET /health`, `/info` and `/metrics`.

mod health;
mod info;
mod metrics;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

/// The routes for operators.
pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Scope(Scope::Read);
    vec![
        route(Access::Public, routes!(health::get_health)),
        route(read, routes!(info::get_info)),
        route(Access::Admin(Scope::Read), routes!(metrics::get_metrics)),
    ]
}
