//! Confirms to the agent that the output of a command was delivered.
//!
//! A server that is killed loses output that it has read from an agent and not yet sent on. So the request tells the agent that
//! its output is relayed, and a confirmation follows once it was delivered. Without the confirmation, the agent sends the last
//! output again to the next client that follows the command.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use sandyard_agent_client::AgentClient;
use sandyard_agent_client::wire::routes::{header, process};
use tokio::runtime::Handle;

const RELAYED: HeaderName = HeaderName::from_static(header::RELAYED);
const READER: HeaderName = HeaderName::from_static(header::READER);

/// Wait before the confirmation of a complete response, whose end may not have reached the client yet.
const CONFIRM_AFTER: Duration = Duration::from_millis(100);

/// The agent that waits for a confirmation, and its name for the reader.
#[derive(Debug)]
pub(crate) struct Relay {
    agent: AgentClient,
    reader: String,
}

/// Announces to the agent that the response is relayed, on the routes that start or join a command.
pub(super) fn announce(parts: &mut Parts, is_host_socket: bool) {
    // Clients must not set this header.
    parts.headers.remove(RELAYED);
    if is_host_socket && matches!(parts.uri.path(), process::START | process::CONNECT) {
        parts.headers.insert(RELAYED, HeaderValue::from_static("1"));
    }
}

/// Removes the reader's name from a response; none: the agent does not wait for a confirmation.
pub(super) fn requested(headers: &mut HeaderMap, agent: &AgentClient) -> Option<Relay> {
    let reader = headers.remove(READER)?.to_str().ok()?.to_owned();
    Some(Relay {
        agent: agent.clone(),
        reader,
    })
}

impl Relay {
    /// Confirms the delivery: at once when the client left, a little later when the response is complete.
    pub(super) fn confirm(self, is_complete: bool) {
        // Without a runtime the server has ended, and delivery is uncertain.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if is_complete {
                tokio::time::sleep(CONFIRM_AFTER).await;
            }
            if let Err(error) = self.agent.finish_relay(&self.reader).await {
                tracing::debug!(%error, "Cannot confirm to an agent that its output was delivered");
            }
        });
    }
}
