//! The control plane: sandboxes, snapshots and templates, one verb per file.
//!
//! The paths are those of every version of the SDKs. The versions differ in the default time of a sandbox, and in that a resume of a
//! running sandbox fails where a connect succeeds.
//!
//! Sandboxes of this dialect have a fixed end ([`Expiry::Fixed`]). Its state `paused` covers the statuses paused and stopped: a pause
//! without memory is a stop.
//!
//! | file | holds |
//! |---|---|
//! | `name` | the sandbox that a path names |
//! | `template_name` | the template that a text names |
//! | `view` | a sandbox as this dialect shows it |
//! | `network` | network policies in E2B's form |
//! | the others | a verb or two each |
//!
//! [`Expiry::Fixed`]: sandyard_service::Expiry::Fixed

mod connect;
mod create;
mod fork;
mod health;
mod list;
mod logs;
mod lookup;
mod metadata;
mod metrics;
mod name;
mod network;
mod pages;
mod pause;
mod secrets;
mod snapshots;
mod template_name;
mod templates;
mod timeout;
mod view;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

/// The version of E2B's agent that the agent in every sandbox is compatible with.
pub(crate) const ENVD_VERSION: &str = "0.6.13";

/// The routes of the control plane.
pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Scope(Scope::Read);
    let used = Access::Scope(Scope::Use);
    let manage = Access::Scope(Scope::Manage);
    [
        route(Access::Public, routes!(health::e2b_health)),
        route(manage, routes!(create::e2b_create)),
        route(manage, routes!(create::e2b_create_v1)),
        route(used, routes!(connect::e2b_connect)).deprecated_alias("/e2b/sandboxes/{id}/connect"),
        route(manage, routes!(connect::e2b_resume)),
        route(manage, routes!(pause::e2b_pause)),
        route(read, routes!(lookup::e2b_get)),
        route(manage, routes!(lookup::e2b_delete)),
        route(read, routes!(list::e2b_list)),
        route(read, routes!(list::e2b_list_v1)),
        route(manage, routes!(timeout::e2b_set_timeout)),
        route(manage, routes!(timeout::e2b_refresh)),
        route(read, routes!(metrics::e2b_metrics)),
        route(read, routes!(metrics::e2b_metrics_of_many)),
        route(read, routes!(logs::e2b_logs)),
        route(read, routes!(logs::e2b_logs_v1)),
        route(manage, routes!(network::e2b_set_network)),
        route(manage, routes!(snapshots::e2b_snapshot)),
        route(read, routes!(snapshots::e2b_list_snapshots)),
        route(manage, routes!(fork::e2b_fork)),
        route(read, routes!(templates::e2b_list_templates)).also("/e2b/default-templates"),
        route(read, routes!(templates::e2b_list_templates_v2)),
        route(read, routes!(templates::e2b_get_template)),
        route(read, routes!(templates::e2b_find_template)),
        route(manage, routes!(templates::e2b_publish_template))
            .deprecated_alias("/e2b/templates/{name}"),
        route(manage, routes!(templates::e2b_delete_template)),
        route(manage, routes!(templates::e2b_build_template)),
        route(read, routes!(secrets::e2b_list_secrets)),
        route(manage, routes!(secrets::e2b_create_secret)),
        route(read, routes!(secrets::e2b_get_secret)),
        route(manage, routes!(secrets::e2b_update_secret)),
        route(manage, routes!(secrets::e2b_delete_secret)),
    ]
    .into_iter()
    .map(Route::strict)
    .collect()
}
