//! Files and folders of any size, in and out.
//!
//! Files are not held in memory: a chunk is forwarded before the next is read, so a slow receiver slows the sender down.
//!
//! | file | holds |
//! |---|---|
//! | `content` | bodies of requests as readers, files as bodies of responses |
//! | `raw` | `/sandboxes/{id}/files?path=`: the bytes of a file |
//! | `entries` | names and attributes: list, stat, rename, remove, create a folder |
//! | `upload`, `download` | the native dialect's multipart upload, and downloads |
//! | `bounded_form` | bounds the bytes that a multipart parser buffers |
//! | `text` | text files, read whole for responses in JSON |
//! | `from_url`, `to_url` | files that are fetched from a URL, or sent to one |
//! | `archive` | the Docker dialect's tar streams |
//! | `template` | archives that become templates |
//! | `write_result` | the response to writing a file |

mod archive;
mod bounded_form;
mod content;
mod download;
mod entries;
mod from_url;
mod raw;
mod template;
mod text;
mod to_url;
mod upload;
mod write_result;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

pub(crate) use content::{read_body, send_bytes};
pub(crate) use text::{WholeFile, read_whole};

/// The routes of files.
pub(crate) fn routes() -> Vec<Route> {
    let admin = Access::Scope(Scope::Admin);
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
        upload::without_body_limit(route(used, routes!(upload::upload_file))),
        route(used, routes!(download::download_file)),
        route(used, routes!(download::download_file_stream)),
        route(used, routes!(from_url::upload_file_from_url)),
        route(used, routes!(to_url::download_to_presigned_url)),
        route(used, routes!(archive::copy_to)),
        route(used, routes!(archive::copy_from)),
        route(admin, routes!(template::import_template)),
    ]
}
