//! The way to a port.

use std::time::Duration;

use sandyard_agent_client::wire::Code;
use sandyard_agent_client::{AgentClient, ClientError, DialStream};
use sandyard_preview::{DialError, Dialled, ForwardLimits, Scheme};

use crate::app::{App, Listener};

/// Until a port is connected: the agent waits for those that are still being started, and tools may have to be brought in first.
/// Both have shorter times of their own.
const CONNECT: Duration = Duration::from_secs(150);

/// Sizes and times of an exchange with a port.
pub(crate) fn limits() -> ForwardLimits {
    ForwardLimits {
        connect: CONNECT,
        ..ForwardLimits::default()
    }
}

/// How the visitor reached us; a proxy in front may speak TLS for us.
pub(super) fn scheme(app: &App, listener: Option<Listener>) -> Scheme {
    let is_public_tls = app
        .settings()
        .public_url
        .as_deref()
        .is_some_and(|url| url.starts_with("https://"));
    if is_public_tls || listener.is_some_and(|listener| listener.is_tls) {
        Scheme::Https
    } else {
        Scheme::Http
    }
}

/// Connects to a port inside a sandbox.
pub(crate) async fn dial(agent: AgentClient, port: u16) -> Result<Dialled<DialStream>, DialError> {
    let dialled = agent.dial(port).await.map_err(|error| match error {
        ClientError::Remote {
            code: Code::Unavailable,
            ..
        } => DialError::PortClosed,
        ClientError::Timeout { .. } => DialError::Timeout,
        other => DialError::Unreachable(other.into()),
    })?;
    Ok(Dialled {
        headers: dialled.headers().clone(),
        stream: dialled,
    })
}
