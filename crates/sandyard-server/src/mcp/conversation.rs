//! What a request tells about the conversation it belongs to.

use axum::http::{HeaderMap, HeaderName};

/// The label of a conversation. The server keeps nothing for it: it only distinguishes the calls of several clients.
pub(super) const CONVERSATION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Marks a request whose client accepts the result only, no progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultOnly;

/// The label of the conversation a request belongs to.
pub(super) fn conversation(headers: &HeaderMap) -> Option<String> {
    let label = headers.get(CONVERSATION)?.to_str().ok()?;
    (label.len() <= 64).then(|| label.to_owned())
}
