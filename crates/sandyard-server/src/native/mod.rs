//! The native dialect: `/sandboxes/*`, and routes for operators and the CLI. One file for each operation.
//!
//! Responses have no envelope; errors are `{"detail", "code", "hint", "field"}`. The enveloped dialect uses the same
//! handlers.

mod connect;
mod create_directory;
mod create_sandbox;
mod delete;
mod diff;
mod flows;
mod history;
mod info;
mod list;
mod manage_templates;
mod network;
mod operations;
mod pause;
mod ports;
mod run_command;
mod schedule_timeout;
mod secrets;
mod setup_mcp;
mod snapshot;
mod status;
mod text_files;
mod unknown;
mod update;
mod usage_history;
mod volumes;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

/// Schemas with two names for one field, of which one is required.
pub(crate) const ONE_OF: [(&str, &[&str]); 3] = [
    ("ReadFile", &["path", "file_path"]),
    ("WriteFile", &["path", "file_path"]),
    ("SetTimeout", &["timeout_seconds", "timeout"]),
];

/// The routes of this dialect.
pub(crate) fn routes() -> Vec<Route> {
    let admin = Access::Scope(Scope::Admin);
    let read = Access::Scope(Scope::Read);
    let used = Access::Scope(Scope::Use);
    let manage = Access::Scope(Scope::Manage);
    vec![
        route(manage, routes!(create_sandbox::create_sandbox)),
        route(used, routes!(connect::connect_sandbox)),
        route(used, routes!(run_command::run_command)).deprecated_alias("/sandboxes/run-cmd"),
        // It takes a whole file, up to the operator's limit.
        route(used, routes!(text_files::write_file)).with_max_body(None),
        route(used, routes!(text_files::read_file)),
        route(used, routes!(create_directory::create_directory)),
        route(used, routes!(ports::expose_port)),
        route(read, routes!(ports::get_port)),
        route(manage, routes!(ports::set_port_access)),
        route(manage, routes!(schedule_timeout::schedule_timeout))
            .deprecated_alias("/sandboxes/timeout"),
        route(used, routes!(setup_mcp::setup_mcp)),
        route(read, routes!(status::get_status)),
        route(read, routes!(status::get_sandbox_status)),
        route(read, routes!(info::get_sandbox)).also("/sandboxes/{id}/info"),
        route(read, routes!(info::get_sandbox_urls)),
        route(read, routes!(list::list_sandboxes)),
        route(read, routes!(history::list_all_events)),
        route(read, routes!(history::list_events)),
        route(read, routes!(history::get_sandbox_metrics)),
        route(read, routes!(usage_history::get_sandbox_metrics_history)),
        route(read, routes!(network::get_network)),
        route(manage, routes!(network::set_network)),
        route(manage, routes!(network::allow_network)),
        route(manage, routes!(network::deny_network)),
        route(read, routes!(flows::list_flows)),
        route(read, routes!(secrets::list_secrets)),
        route(manage, routes!(secrets::put_secret)),
        route(manage, routes!(secrets::delete_secret)),
        route(read, routes!(volumes::list_volumes)),
        route(manage, routes!(volumes::create_volume)),
        route(read, routes!(volumes::get_volume)),
        route(manage, routes!(volumes::delete_volume)),
        route(manage, routes!(pause::pause_sandbox)),
        route(manage, routes!(pause::resume_sandbox)),
        route(manage, routes!(pause::stop_sandbox)),
        route(manage, routes!(update::update_sandbox)),
        route(manage, routes!(delete::delete_sandbox)),
        route(manage, routes!(delete::delete_named_sandbox)),
        route(manage, routes!(snapshot::snapshot_sandbox)),
        route(manage, routes!(snapshot::fork_sandbox)),
        route(read, routes!(diff::diff_sandbox)),
        route(read, routes!(manage_templates::list_templates)),
        route(manage, routes!(manage_templates::delete_template)),
        route(admin, routes!(operations::list_nodes)),
        route(admin, routes!(operations::list_dead_timers)),
        route(admin, routes!(operations::revive_timer)),
        route(admin, routes!(unknown::list_unknown_instances)),
        route(admin, routes!(unknown::delete_unknown_instance)),
    ]
}
