//! A word to the agent that output of a command got where it was meant for.
//!
//! A server that is killed takes along what it has read of an agent and not yet handed on. So the agent is told that output is
//! passed on, and afterwards that it got there; without that word the next who follows the command gets the last of it again.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use sandyard_agent_client::AgentClient;
use sandyard_agent_client::wire::routes::{header, process};
use tokio::runtime::Handle;

const RELAYED: HeaderName = HeaderName::from_static(header::RELAYED);
const READER: HeaderName = HeaderName::from_static(header::READER);

/// How long the end of an answer may still be on its way to the client.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// Whom to tell that output got where it was meant for.
#[derive(Debug)]
pub(crate) struct Relay {
    agent: AgentClient,
    reader: String,
}

/// Says of a request that its answer is passed on, where the agent wants to know.
pub(super) fn announce(parts: &mut Parts, is_by_host: bool) {
    // Not for clients to say.
    parts.headers.remove(RELAYED);
    if is_by_host && matches!(parts.uri.path(), process::START | process::CONNECT) {
        parts.headers.insert(RELAYED, HeaderValue::from_static("1"));
    }
}

/// Takes the reader's name off an answer; none: nobody waits for a word.
pub(super) fn wanted(headers: &mut HeaderMap, agent: &AgentClient) -> Option<Relay> {
    let reader = headers.remove(READER)?.to_str().ok()?.to_owned();
    Some(Relay {
        agent: agent.clone(),
        reader,
    })
}

impl Relay {
    /// Says that all got there: at once when the client left, a little later when the answer came to its end.
    pub(super) fn say(self, is_whole: bool) {
        // Without a runtime the server is over, and nothing is sure.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if is_whole {
                tokio::time::sleep(ON_ITS_WAY).await;
            }
            if let Err(error) = self.agent.left(&self.reader).await {
                tracing::debug!(%error, "An agent was not told that output got through");
            }
        });
    }
}
