//! The native dialect: `/sandboxes/*`, and what an operator and the CLI need beside it. One verb a file.
//!
//! No envelope; errors are `{"detail", "code", "hint", "field"}`. The enveloped dialect is made of the same handlers.

pub(crate) mod connect;
pub(crate) mod copies;
pub(crate) mod create;
mod create_directory;
pub(crate) mod delete;
pub(crate) mod expose_port;
mod file_path;
mod flows;
pub(crate) mod history;
pub(crate) mod info;
pub(crate) mod list;
mod network;
mod operations;
pub(crate) mod pause;
pub(crate) mod policy;
mod port_access;
pub(crate) mod read_file;
pub(crate) mod run_command;
mod secrets;
pub(crate) mod set_timeout;
pub(crate) mod setup_mcp;
mod status;
pub(crate) mod templates;
mod tool_answer;
pub(crate) mod tool_progress;
pub(crate) mod tool_server;
mod unknown;
mod usage_history;
pub(crate) mod view;
mod volumes;
pub(crate) mod write_file;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::need::Need;
use crate::router::{Mounted, mount};

/// Fields of which one must be there, by schema: two names for one thing.
pub(crate) const ONE_OF: [(&str, &[&str]); 3] = [
    ("ReadFile", &["path", "file_path"]),
    ("WriteFile", &["path", "file_path"]),
    ("SetTimeout", &["timeout_seconds", "timeout"]),
];

/// The routes of this dialect.
pub(crate) fn routes() -> Vec<Mounted> {
    let read = Need::Scope(Scope::Read);
    let used = Need::Scope(Scope::Use);
    let manage = Need::Scope(Scope::Manage);
    vec![
        mount(manage, routes!(create::create_sandbox)),
        mount(used, routes!(connect::connect_sandbox)),
        mount(used, routes!(run_command::run_command)).also("/sandboxes/run-cmd"),
        mount(used, routes!(write_file::write_file)),
        mount(used, routes!(read_file::read_file)),
        mount(used, routes!(create_directory::create_directory)),
        mount(used, routes!(expose_port::expose_port)),
        mount(read, routes!(port_access::get_port)),
        mount(manage, routes!(port_access::set_port_access)),
        mount(manage, routes!(set_timeout::schedule_timeout)).also("/sandboxes/timeout"),
        mount(used, routes!(setup_mcp::setup_mcp)),
        mount(read, routes!(status::get_status)),
        mount(read, routes!(status::get_sandbox_status)),
        mount(read, routes!(info::get_sandbox)),
        mount(read, routes!(info::get_sandbox_urls)),
        mount(read, routes!(list::list_sandboxes)),
        mount(read, routes!(history::list_events)),
        mount(read, routes!(history::get_sandbox_metrics)),
        mount(read, routes!(usage_history::get_sandbox_metrics_history)),
        mount(read, routes!(network::get_network)),
        mount(manage, routes!(network::set_network)),
        mount(manage, routes!(network::allow_network)),
        mount(manage, routes!(network::deny_network)),
        mount(read, routes!(flows::list_flows)),
        mount(read, routes!(secrets::list_secrets)),
        mount(manage, routes!(secrets::put_secret)),
        mount(manage, routes!(secrets::delete_secret)),
        mount(read, routes!(volumes::list_volumes)),
        mount(manage, routes!(volumes::create_volume)),
        mount(read, routes!(volumes::get_volume)),
        mount(manage, routes!(volumes::delete_volume)),
        mount(manage, routes!(pause::pause_sandbox)),
        mount(manage, routes!(pause::resume_sandbox)),
        mount(manage, routes!(pause::stop_sandbox)),
        mount(manage, routes!(delete::delete_sandbox)),
        mount(manage, routes!(delete::delete_named_sandbox)),
        mount(manage, routes!(copies::snapshot_sandbox)),
        mount(manage, routes!(copies::fork_sandbox)),
        mount(read, routes!(copies::diff_sandbox)),
        mount(read, routes!(templates::list_templates)),
        mount(manage, routes!(templates::delete_template)),
        mount(Need::Scope(Scope::Admin), routes!(operations::list_nodes)),
        mount(
            Need::Scope(Scope::Admin),
            routes!(operations::list_dead_timers),
        ),
        mount(Need::Scope(Scope::Admin), routes!(operations::revive_timer)),
        mount(
            Need::Scope(Scope::Admin),
            routes!(unknown::list_unknown_instances),
        ),
        mount(
            Need::Scope(Scope::Admin),
            routes!(unknown::delete_unknown_instance),
        ),
    ]
}
