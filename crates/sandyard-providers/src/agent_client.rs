//! Clients of agents that require a token.

use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

/// A client that sends the token and has no idle timeout: sandboxes are paused with streams open.
pub(crate) fn with_token(endpoint: Endpoint, access_token: &str) -> Result<AgentClient> {
    let client = AgentClient::patient(endpoint).with_access_token(access_token);
    client.map_err(|error| {
        let message = "the access token is not a valid header value";
        ProviderError::new(ProviderErrorKind::Invalid, message).source(error)
    })
}
