//! Egress channels, which the gateway opens to an agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sandyard_wire::routes::{EGRESS, EGRESS_UPGRADE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::closer::Closer;
use crate::endpoint::Endpoint;
use crate::unix::{Accepts, AgentStream};

/// Maximum length of the head of the agent's answer, in bytes.
const MAX_HEAD: usize = 4096;

/// How long the agent may take from the first byte of its answer to the last of its head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

impl Endpoint {
    /// Opens a channel for [`egress`](sandyard_wire::egress) frames. It needs the host's own Unix socket, which can carry descriptors,
    /// or a [`Dial`](crate::Dial) with such channels.
    ///
    /// Waits without limit for the agent's answer: a paused agent answers after it is resumed. `closer` closes the channel and
    /// the descriptors in it that nobody takes.
    ///
    /// # Errors
    /// When nobody listens there, or the listener is not an agent with egress channels.
    pub async fn open_egress(&self, closer: &Arc<Closer>) -> io::Result<AgentStream> {
        let unsupported = || {
            let message = "egress channels need a Unix socket, which can carry descriptors";
            io::Error::new(io::ErrorKind::Unsupported, message)
        };
        let path = match self {
            Self::Unix(path) => path,
            Self::Tcp(_) => return Err(unsupported()),
            Self::Custom(dial) => {
                let stream = dial.open_egress().ok_or_else(unsupported)?.await?;
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
            return Err(not_an_agent());
        }
        head.push(stream.read_u8().await?);
    }
    if head.starts_with(b"HTTP/1.1 101 ") {
        Ok(())
    } else {
        Err(not_an_agent())
    }
}

fn not_an_agent() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the listener is not an agent with egress channels",
    )
}
