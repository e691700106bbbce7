//! The way from this server to the agents of containers, and from those to the gateway.
//!
//! [`sandyard_link`] tells how it works. One link leads to each container, opened when it is first needed and again when it broke.
//! Each is a task of its own, and what comes from one container can end that container's link and nothing else.

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

/// What links need of whoever knows containers.
#[async_trait]
pub(crate) trait OpenLink: Send + Sync {
    /// Runs `/.sandyard/agent link` in a container, as root; gives back its standard input and output as one stream, without
    /// anything else in it. Dropping that ends the program sooner or later.
    async fn open(&self, id: &str) -> io::Result<BoxedStream>;

    /// What the container's agent is to know, access token and variables among it. It is told anew with every link, so what the
    /// agent can change of it by itself is best left out. A host name is for the container engine to set.
    async fn init_request(&self, id: &str) -> io::Result<InitRequest>;
}
