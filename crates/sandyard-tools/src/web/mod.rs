//! Fetching pages without a browser, and search through the configured service.

mod http;
mod markdown;
mod markdown_writer;
mod search;
#[cfg(test)]
mod tests;
pub(crate) mod tool_service;
mod visit;

use crate::tool::Tool;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    let mut all = visit::tools();
    all.extend(search::tools());
    all
}
