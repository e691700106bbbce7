//! A connection to an agent on another server: an HTTP/1.1 request that is upgraded to a stream.

use std::io;
use std::time::Duration;

use http::StatusCode;
use http::header::{CONNECTION, UPGRADE as UPGRADE_HEADER};
use sandyard_agent_client::{AgentClient, BoxedStream, Dial, Dialling};
use sandyard_provider::{AgentAddress, Provider, ProviderError, ProviderErrorKind, Result, Verb};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};

use super::{AGENT_PATH, Node, collect, error};

/// The protocol of the upgrade.
pub const UPGRADE: &str = "sandyard-agent";

/// Prefix of a volume's id in place of an instance's: instance ids hold no dash.
const VOLUME: &str = "volume-";

/// How long an agent may take to accept a connection: it only has to enter its queue.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Buffer size in bytes for each direction.
const BUFFER: usize = 64 << 10;

/// Dials one agent.
pub(super) struct Tunnel {
    node: Node,
    id: String,
    name: String,
}

impl Tunnel {
    pub(super) fn new(node: Node, id: &str) -> Self {
        Self {
            name: format!("{} through {}", id, node.url),
            id: id.to_owned(),
            node,
        }
    }

    /// Dials the agent that sees a volume.
    pub(super) fn to_volume(node: Node, id: &str) -> Self {
        Self::new(node, &format!("{VOLUME}{id}"))
    }

    async fn open(&self) -> Result<BoxedStream> {
        let what = Verb::Agent.as_str();
        let request = self.node.begin(&[AGENT_PATH, &self.id])?;
        let request = request
            .header(CONNECTION, "upgrade")
            .header(UPGRADE_HEADER, UPGRADE);
        let response = request.send().await;
        let response = response.map_err(|failure| error::unsent(what, failure))?;
        let status = response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(error::refused(
                what,
                status,
                &collect(what, response).await?,
            ));
        }
        let upgraded = response.upgrade().await;
        let stream = upgraded.map_err(|failure| error::unsent(what, failure))?;
        Ok(Box::new(stream))
    }
}

impl Dial for Tunnel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            self.open().await.map_err(|error| {
                let kind = match error.kind {
                    ProviderErrorKind::NotFound => io::ErrorKind::NotFound,
                    ProviderErrorKind::TimedOut => io::ErrorKind::TimedOut,
                    _ => io::ErrorKind::ConnectionRefused,
                };
                io::Error::new(kind, error)
            })
        })
    }
}

/// Opens the answering end: a stream to the agent of an instance or volume, to be [`splice`]d with the upgraded request.
///
/// # Errors
/// `NotFound` when the instance is not on this node; `Conflict` when it has no processes; `Unavailable` when its agent does not
/// accept the connection.
pub async fn tunnel(provider: &dyn Provider, id: &str) -> Result<BoxedStream> {
    let agent = match id.strip_prefix(VOLUME) {
        Some(volume) => provider.open_volume(volume).await?,
        None => agent_of(provider, id).await?,
    };
    let unavailable = |message| ProviderError::new(ProviderErrorKind::Unavailable, message);
    match tokio::time::timeout(DIAL_TIMEOUT, agent.endpoint().dial()).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(unavailable("the agent cannot be reached").source(error)),
        Err(_) => Err(unavailable("the agent does not accept the connection")),
    }
}

async fn agent_of(provider: &dyn Provider, id: &str) -> Result<AgentClient> {
    let instance = provider.inspect(id).await?;
    let instance = instance.ok_or_else(|| {
        ProviderError::new(ProviderErrorKind::NotFound, "no such instance on this node")
    })?;
    if !instance.state.is_live() {
        let message = "the instance has no processes";
        return Err(ProviderError::new(ProviderErrorKind::Conflict, message));
    }
    let address = AgentAddress {
        id: instance.id,
        // The client at the other end sends it with each request.
        access_token: String::new(),
    };
    provider.agent(&address).await
}

/// Copies bytes both ways until both ends are done or one fails.
pub async fn splice(
    mut caller: impl AsyncRead + AsyncWrite + Unpin,
    mut agent: BoxedStream,
) -> io::Result<()> {
    copy_bidirectional_with_sizes(&mut caller, &mut agent, BUFFER, BUFFER)
        .await
        .map(drop)
}
