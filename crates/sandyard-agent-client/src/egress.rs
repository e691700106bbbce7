//! The agent's side of the way out, opened by the gateway.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sandyard_wire::routes::{EGRESS, EGRESS_UPGRADE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::closer::Closer;
use crate::endpoint::Endpoint;
use crate::unix::{Accepts, AgentStream};

/// Longest head of the agent's answer.
const MAX_HEAD: usize = 4096;

/// How long the agent may take from the first byte of its answer to the last of its head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

impl Endpoint {
    /// Opens a channel for [`egress`](sandyard_wire::egress) frames. Only over the host's own Unix socket, which is what descriptors
    /// can be sent through, or over a way that has such channels.
    ///
    /// Waits for as long as the agent does not answer: a paused one does not, and will later. `closer` closes the channel and
    /// whatever comes through it that nobody takes.
    ///
    /// # Errors
    /// When nobody listens there, or what listens is no agent with a way out.
    pub async fn open_egress(&self, closer: &Arc<Closer>) -> io::Result<AgentStream> {
        let unsupported = || {
            let message = "descriptors only go through a Unix socket";
            io::Error::new(io::ErrorKind::Unsupported, message)
        };
        let path = match self {
            Self::Unix(path) => path,
            Self::Tcp(_) => return Err(unsupported()),
            Self::Custom(way) => {
                let stream = way.open_egress().ok_or_else(unsupported)?.await?;
                return Ok(AgentStream::new(stream, closer.clone()));
            }
        };
        let mut stream = AgentStream::connect(path, Accepts::Descriptors, closer.clone()).await?;
        let request = format!(
            "GET {EGRESS} HTTP/1.1\r\nHost: agent\r\nConnection: upgrade\r\nUpgrade: {EGRESS_UPGRADE}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        stream.readable().await?;
        tokio::time::timeout(HEAD_TIMEOUT, read_head(&mut stream))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(stream)
    }
}

/// Reads up to the end of the head and not a byte more: frames and their descriptors follow. A descriptor in the head is an error.
async fn read_head(stream: &mut AgentStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD {
            return Err(no_agent());
        }
        head.push(stream.read_u8().await?);
    }
    if head.starts_with(b"HTTP/1.1 101 ") {
        Ok(())
    } else {
        Err(no_agent())
    }
}

fn no_agent() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "what listens there is no agent with a way out",
    )
}
