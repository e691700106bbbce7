//! Connections from this server to the agents of containers, and from those to the gateway.
//!
//! See [`sandyard_link`]. Each container has one link, which is opened when it is first needed and again after it broke. Every link
//! has its own task, and data from a container can only end that container's link.

mod channel;
mod connection;
mod dial;
mod egress;
mod links;
mod tcp_pair;
#[cfg(test)]
mod tests;

use std::io;

use async_trait::async_trait;
use sandyard_agent_client::BoxedStream;
use sandyard_agent_client::wire::host::InitRequest;

pub(crate) use links::Links;

/// Opens links to containers.
#[async_trait]
pub(crate) trait OpenLink: Send + Sync {
    /// Runs `/.sandyard/agent link` in a container, as root; returns its standard input and output as one stream without other
    /// data. When the stream is dropped, the program ends sooner or later.
    async fn open(&self, id: &str) -> io::Result<BoxedStream>;

    /// The initial request for the container's agent, with access token and variables. It is sent with every link, so it should not
    /// contain settings that the agent changes itself. The container engine sets the host name.
    async fn init_request(&self, id: &str) -> io::Result<InitRequest>;
}
