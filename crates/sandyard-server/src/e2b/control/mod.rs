//! The control plane: sandboxes, snapshots and templates, one verb a file.
//!
//! The paths are those of every generation of the SDKs. What differs between them is how long a sandbox lives by default, and
//! that a resume of a running sandbox is refused where a connect is not.
//!
//! E2B's sandboxes are ordinary ones whose time is counted from when it was set ([`Expiry::Fixed`]). Its `paused` is our paused
//! or stopped: a pause without memory is a stop.
//!
//! | file | holds |
//! |---|---|
//! | `name` | which sandbox a path means |
//! | `template_name` | which template a text means |
//! | `view` | a sandbox as this dialect shows it |
//! | `network` | what it may reach, in E2B's words |
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

use crate::mounted::{Mounted, mount};
use crate::need::Need;

/// What the agent in every sandbox is as good as.
pub(crate) const ENVD_VERSION: &str = "0.6.13";

/// Its routes.
pub(crate) fn routes() -> Vec<Mounted> {
    let read = Need::Scope(Scope::Read);
    let used = Need::Scope(Scope::Use);
    let manage = Need::Scope(Scope::Manage);
    [
        mount(Need::Nothing, routes!(health::e2b_health)),
        mount(manage, routes!(create::e2b_create)),
        mount(manage, routes!(create::e2b_create_v1)),
        mount(used, routes!(connect::e2b_connect)).also("/e2b/sandboxes/{id}/connect"),
        mount(manage, routes!(connect::e2b_resume)),
        mount(manage, routes!(pause::e2b_pause)),
        mount(read, routes!(lookup::e2b_get)),
        mount(manage, routes!(lookup::e2b_delete)),
        mount(read, routes!(list::e2b_list)),
        mount(read, routes!(list::e2b_list_v1)),
        mount(manage, routes!(timeout::e2b_set_timeout)),
        mount(manage, routes!(timeout::e2b_refresh)),
        mount(read, routes!(metrics::e2b_metrics)),
        mount(read, routes!(metrics::e2b_metrics_of_many)),
        mount(read, routes!(logs::e2b_logs)),
        mount(read, routes!(logs::e2b_logs_v1)),
        mount(manage, routes!(network::e2b_set_network)),
        mount(manage, routes!(snapshots::e2b_snapshot)),
        mount(read, routes!(snapshots::e2b_list_snapshots)),
        mount(manage, routes!(fork::e2b_fork)),
        mount(read, routes!(templates::e2b_list_templates)).also("/e2b/default-templates"),
        mount(read, routes!(templates::e2b_list_templates_v2)),
        mount(read, routes!(templates::e2b_get_template)),
        mount(read, routes!(templates::e2b_find_template)),
        mount(manage, routes!(templates::e2b_delete_template)),
        mount(manage, routes!(templates::e2b_build_template)),
        mount(read, routes!(secrets::e2b_list_secrets)),
        mount(manage, routes!(secrets::e2b_create_secret)),
        mount(read, routes!(secrets::e2b_get_secret)),
        mount(manage, routes!(secrets::e2b_update_secret)),
        mount(manage, routes!(secrets::e2b_delete_secret)),
    ]
    .into_iter()
    .map(Mounted::strict)
    .collect()
}
