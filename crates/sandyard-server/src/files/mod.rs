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
//! | `outside/` | which URLs that may be |
//! | `archive` | the Docker dialect's tar streams |
//! | `template` | archives that become templates |

mod archive;
mod content;
mod download;
mod entries;
mod from_url;
mod outside;
mod paced;
mod raw;
mod template;
mod text;
mod to_url;
mod upload;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::need::Need;
use crate::router::{Mounted, mount};

pub(crate) use content::read_body;
pub(crate) use outside::Outside;
pub(crate) use text::{WholeFile, read_whole, reserve};

/// The routes of files.
pub(crate) fn routes() -> Vec<Mounted> {
    let used = Need::Scope(Scope::Use);
    vec![
        mount(used, routes!(raw::get_file)),
        mount(used, routes!(raw::put_file)),
        mount(used, routes!(raw::post_file)),
        mount(used, routes!(entries::remove_file)),
        mount(used, routes!(entries::list_files)),
        mount(used, routes!(entries::stat_file)),
        mount(used, routes!(entries::rename_file)),
        mount(used, routes!(entries::make_folder)),
        upload::unlimited(mount(used, routes!(upload::upload_file))),
        mount(used, routes!(download::download_file)),
        mount(used, routes!(download::download_file_stream)),
        mount(used, routes!(from_url::upload_file_from_url)),
        mount(used, routes!(to_url::download_to_presigned_url)),
        mount(used, routes!(archive::copy_to)),
        mount(used, routes!(archive::copy_from)),
        mount(
            Need::Scope(Scope::Admin),
            routes!(template::import_template),
        ),
    ]
}
