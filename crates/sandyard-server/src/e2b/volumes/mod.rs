//! Volumes and their contents.
//!
//! | file | holds |
//! |---|---|
//! | `manage` | `/volumes`: list, make, look at, remove |
//! | `dirs`, `paths`, `content` | `/volumecontent/{id}`: folders, attributes, files |
//! | `keeper` | what those ask of the agent that sees a volume |
//! | `real_path` | where a path leads when links are followed, and that this is in the volume |
//! | `listing`, `places` | what a folder holds, and who may ask for that at the same time |
//! | `entry` | a file or folder as this dialect shows it |
//! | `problem` | what goes wrong, in words a client knows |
//!
//! Contents are for whoever has the volume's token, which its owner is told; the SDKs send it as `Authorization: Bearer`. They
//! look for them at `E2B_VOLUME_API_URL`, and without it at `https://api.{domain}`.

mod content;
mod dirs;
mod entry;
mod keeper;
mod listing;
mod manage;
mod paths;
mod places;
mod problem;
mod real_path;

use sandyard_core::Scope;
use utoipa_axum::routes;

pub(crate) use places::Places;

use crate::mounted::{Mounted, mount};
use crate::need::Need;

/// Its routes.
pub(crate) fn routes() -> Vec<Mounted> {
    let opened = Need::Volume(Scope::Use);
    let routes = [
        mount(Need::Scope(Scope::Read), routes!(manage::e2b_list_volumes)),
        mount(
            Need::Scope(Scope::Manage),
            routes!(manage::e2b_create_volume),
        ),
        // Manage: the answer holds what opens its contents.
        mount(Need::Scope(Scope::Manage), routes!(manage::e2b_get_volume)),
        mount(
            Need::Scope(Scope::Manage),
            routes!(manage::e2b_delete_volume),
        ),
        mount(opened, routes!(dirs::e2b_list_volume_dir)),
        mount(opened, routes!(dirs::e2b_make_volume_dir)),
        mount(opened, routes!(paths::e2b_get_volume_path)),
        mount(opened, routes!(paths::e2b_change_volume_path)),
        mount(opened, routes!(paths::e2b_remove_volume_path)),
        mount(opened, routes!(content::e2b_read_volume_file)),
        mount(opened, routes!(content::e2b_write_volume_file)),
    ];
    routes.into_iter().map(Mounted::strict).collect()
}
