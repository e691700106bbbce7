//! Reading the web without a browser, and searching it through the configured server.

mod http;
mod markdown;
pub(crate) mod outside;
mod search;
#[cfg(test)]
mod tests;
mod visit;
mod writer;

use crate::tool::Tool;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    let mut all = visit::tools();
    all.extend(search::tools());
    all
}
