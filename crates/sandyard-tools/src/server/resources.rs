//! The workspace as MCP resources: every file has a `file:///…` URI.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ignore::WalkState;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use sandyard_core::percent;
use tokio_util::sync::CancellationToken;

use crate::files::blocking::{Bounds, blocking};
use crate::files::kind::{Kind, START};
use crate::files::open::open;
use crate::reply::{Problem, Result};
use crate::search::walk::{End, Walk};
use crate::tool_state::ToolState;
use crate::workspace::Workspace;

/// Number of files on a page.
const PAGE_SIZE: usize = 100;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 10;
/// Maximum size of a file, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;
/// Time limit for a page.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Start of every URI.
const SCHEME: &str = "file://";

/// Lists a page of the workspace's files, without hidden and ignored ones.
pub(super) async fn list(
    tool_state: &ToolState,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let after = match request.and_then(|request| request.cursor) {
        Some(cursor) => Some(after(&cursor)?),
        None => None,
    };
    let workspace = tool_state.workspace.clone();
    let page = blocking(move || {
        let bounds = Bounds::new(&CancellationToken::new(), TIME_LIMIT);
        let (page, end) = page(&workspace, after.as_deref(), &bounds)?;
        list_result(page, end)
    });
    page.await
        .map_err(|problem| ErrorData::internal_error(problem.to_string(), None))
}

/// The result for a page. The next page starts after the last file of this one.
fn list_result(mut page: Vec<(PathBuf, Resource)>, end: End) -> Result<ListResourcesResult> {
    if page.is_empty() && end == End::TimedOut {
        return Err(Problem::new(
            "listing the files takes too long: use the tools Glob and LS",
        ));
    }
    page.truncate(PAGE_SIZE);
    let next = page.last().map(|(path, _)| cursor(path));
    let resources = page.into_iter().map(|(_, resource)| resource);
    let mut result = ListResourcesResult::with_all_items(resources.collect());
    // Files that were not listed in time may be on the next page.
    result.next_cursor = next.filter(|_| end != End::Complete);
    Ok(result)
}

/// The files of a page, and one more to find out whether there is another page.
fn page(
    workspace: &Workspace,
    after: Option<&Path>,
    bounds: &Bounds,
) -> Result<(Vec<(PathBuf, Resource)>, End)> {
    let root = workspace.resolve(".")?;
    let mut page = Vec::new();
    let end = Walk::new(root.clone())
        .max_depth(MAX_DEPTH)
        .visit(bounds, |path| {
            let below = path.strip_prefix(&root).unwrap_or(path);
            if after.is_some_and(|after| below <= after) {
                return WalkState::Continue;
            }
            // A URI is text, so skip names that are not UTF-8.
            if let Some(uri) = path.to_str().map(uri) {
                let size = path.symlink_metadata().map_or(0, |metadata| metadata.len());
                let resource = Resource::new(uri, below.display().to_string())
                    .with_mime_type(media_type(path))
                    .with_size(size);
                page.push((below.to_owned(), resource));
            }
            if page.len() > PAGE_SIZE {
                WalkState::Quit
            } else {
                WalkState::Continue
            }
        });
    Ok((page, end))
}

fn cursor(path: &Path) -> String {
    URL_SAFE_NO_PAD.encode(path.as_os_str().as_encoded_bytes())
}

fn after(cursor: &str) -> Result<PathBuf, ErrorData> {
    let path = URL_SAFE_NO_PAD.decode(cursor).ok();
    let path = path.and_then(|path| String::from_utf8(path).ok());
    path.map(PathBuf::from)
        .ok_or_else(|| ErrorData::invalid_params("invalid cursor: start without one", None))
}

/// The URI template for files.
pub(super) fn templates(tool_state: &ToolState) -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new("file://{+path}", "file")
        .with_title("File in the workspace")
        .with_description(format!(
            "Any file below {}, by absolute path; maximum {MAX_SIZE} bytes",
            tool_state.workspace.root().display()
        ));
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads a file.
pub(super) async fn read(
    tool_state: &ToolState,
    uri: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let not_found = || ErrorData::resource_not_found(format!("{uri} does not exist"), None);
    let path = path_of(uri).ok_or_else(not_found)?;
    // Files outside of the workspace do not exist for clients.
    let path = tool_state
        .workspace
        .resolve(&path)
        .map_err(|_| not_found())?;
    let own_path = path.clone();
    let bytes = blocking(move || {
        let (file, _) = open(&own_path)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_SIZE + 1).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(Problem::new)
    });
    let bytes = bytes.await.map_err(|_| not_found())?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(ErrorData::invalid_params(
            format!("{uri} is larger than {MAX_SIZE} bytes: read a part of it with the tool Read"),
            None,
        ));
    }
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri).with_mime_type(media_type(&path)),
        Err(error) => {
            let bytes = error.into_bytes();
            let media_type = match Kind::of(&bytes[..bytes.len().min(START)]) {
                Kind::Image(media_type) => media_type,
                _ => media_type(&path),
            };
            ResourceContents::blob(STANDARD.encode(bytes), uri).with_mime_type(media_type)
        }
    };
    Ok(ReadResourceResult::new(vec![contents]).into())
}

/// The URI of a file.
fn uri(path: &str) -> String {
    format!("{SCHEME}{}", percent::encode_path(path))
}

/// The path a file URI names.
fn path_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix(SCHEME)?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    percent::decode_strict(path).filter(|_| path.starts_with('/'))
}

fn media_type(path: &Path) -> &'static str {
    match path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default()
    {
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" | "mjs" | "cjs" => "text/javascript",
        "json" => "application/json",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "xz" | "bz2" | "zst" | "so" | "o" | "bin" | "wasm" => "application/octet-stream",
        _ => "text/plain",
    }
}

#[cfg(test)]
#[path = "resources_tests.rs"]
mod tests;
