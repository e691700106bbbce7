//! Files and folders of any size, in and out.
//!
//! No file is ever held in memory: a piece goes on before the next is asked for, and whoever is slow slows the other
//! end down.
//!
//! | file | holds |
//! |---|---|
//! | `content` | bodies of requests as readers, files as bodies of answers |
//! | `raw` | `/sandboxes/{id}/files?path=`: content as it is |
//! | `entries` | names and attributes: list, stat, rename, remove, make a folder |
//! | `upload`, `download` | the native dialect's own forms |
//! | `paced` | a form's bytes, as long as they lead somewhere |
//! | `from_url`, `to_url` | files that come from, or go to, a URL |
//! | `archive` | the Docker dialect's tar streams |
//! | `template` | archives that become templates |

mod archive;
mod content;
mod download;
mod entries;
mod from_url;
mod paced;
mod raw;
mod template;
mod text;
mod to_url;
mod upload;
mod written;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

pub(crate) use content::read_body;
pub(crate) use text::{WholeFile, read_whole};

/// The routes of files.
pub(crate) fn routes() -> Vec<Route> {
    let used = Access::Scope(Scope::Use);
    vec![
        route(used, routes!(raw::get_file)),
        route(used, routes!(raw::put_file)),
        route(used, routes!(raw::post_file)),
        route(used, routes!(entries::remove_file)),
        route(used, routes!(entries::list_files)),
        route(used, routes!(entries::stat_file)),
        route(used, routes!(entries::rename_file)),
        route(used, routes!(entries::make_folder)),
        upload::unlimited(route(used, routes!(upload::upload_file))),
        route(used, routes!(download::download_file)),
        route(used, routes!(download::download_file_stream)),
        route(used, routes!(from_url::upload_file_from_url)),
        route(used, routes!(to_url::download_to_presigned_url)),
        route(used, routes!(archive::copy_to)),
        route(used, routes!(archive::copy_from)),
        route(
            Access::Scope(Scope::Admin),
            routes!(template::import_template),
        ),
    ]
}
