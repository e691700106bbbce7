//! Clients of agents that ask for a token.

use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

/// A client that shows the token, and bears any silence: sandboxes are paused with streams open.
pub(crate) fn patient(endpoint: Endpoint, access_token: &str) -> Result<AgentClient> {
    let client = AgentClient::patient(endpoint).with_access_token(access_token);
    client.map_err(|error| {
        let message = "the access token cannot be sent";
        ProviderError::new(ProviderErrorKind::Invalid, message).source(error)
    })
}
