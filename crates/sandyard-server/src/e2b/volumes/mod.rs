//! Volumes and their contents.
//!
//! | file | holds |
//! |---|---|
//! | `manage` | `/volumes`: list, create, get, delete |
//! | `dirs`, `paths`, `content` | `/volumecontent/{id}`: folders, attributes, files |
//! | `volume_path` | operations on a path of a volume, by the agent of its volume helper |
//! | `program` | the programs that the volume helper runs for them |
//! | `real_path` | where a path leads when links are followed, which must be in the volume |
//! | `listing`, `listing_slots` | the entries of a folder, and how many listings run at the same time |
//! | `entry` | a file or folder as this dialect shows it |
//! | `error` | failures of programs and agents, with paths as the client knows them |
//!
//! The token of a volume, which its owner gets, opens its contents; the SDKs send it as `Authorization: Bearer`. They request
//! contents at `E2B_VOLUME_API_URL`, and without it at `https://api.{domain}`.

mod content;
mod dirs;
mod entry;
mod error;
mod listing;
mod listing_slots;
mod manage;
mod paths;
mod program;
mod real_path;
mod volume_path;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

/// The routes of volumes.
pub(crate) fn routes() -> Vec<Route> {
    let manage = Access::Scope(Scope::Manage);
    let read = Access::Scope(Scope::Read);
    let opened = Access::Volume(Scope::Use);
    let routes = [
        route(read, routes!(manage::e2b_list_volumes)),
        route(manage, routes!(manage::e2b_create_volume)),
        // The scope `manage`, because the response holds the token that opens its contents.
        route(manage, routes!(manage::e2b_get_volume)),
        route(manage, routes!(manage::e2b_delete_volume)),
        route(opened, routes!(dirs::e2b_list_volume_dir)),
        route(opened, routes!(dirs::e2b_make_volume_dir)),
        route(opened, routes!(paths::e2b_get_volume_path)),
        route(opened, routes!(paths::e2b_change_volume_path)),
        route(opened, routes!(paths::e2b_remove_volume_path)),
        route(opened, routes!(content::e2b_read_volume_file)),
        route(opened, routes!(content::e2b_write_volume_file)),
    ];
    routes.into_iter().map(Route::strict).collect()
}
