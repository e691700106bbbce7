//! One connection to the launcher, served by a worker of its own.

use std::io;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::error::{EngineError, ErrorKind, Result};
use crate::frame;
use crate::protocol::{Answer, MAX_REPLY, Request};
use crate::sys::socket::shortened;

/// Archive data sent at once.
const CHUNK: usize = 256 << 10;

/// A connection. One request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    was_not_received: bool,
}

impl Connection {
    /// Connects to the launcher's socket, however long its path is.
    pub(super) async fn open(socket: &Path) -> io::Result<Self> {
        let (_folder, short) = shortened(socket)?;
        Ok(Self {
            stream: UnixStream::connect(short).await?,
            was_not_received: false,
        })
    }

    /// The process that listens on the socket, by the kernel's account; `None`: it is in another pid namespace.
    pub(super) fn listener_pid(&self) -> Option<i32> {
        let peer = self.stream.peer_cred().ok()?;
        peer.pid().filter(|pid| *pid > 0)
    }

    /// Says whether the other end has closed. It sends nothing without a request, so anything to read means the end.
    pub(super) fn is_closed(&self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Says whether the last request was lost before anybody read it, so that nothing of it was done.
    pub(super) fn was_not_received(&self) -> bool {
        self.was_not_received
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<Answer> {
        let frame = encode(request)?;
        // A request that could not be sent whole cannot be read either.
        self.was_not_received = true;
        self.send(&frame).await.map_err(lost)?;
        self.was_not_received = false;
        self.receive().await
    }

    /// Sends a request and an archive, and waits for the answer.
    pub(super) async fn import(
        &mut self,
        request: &Request,
        mut archive: impl AsyncRead + Unpin,
        mut progress: impl FnMut(u64),
    ) -> Result<Answer> {
        self.send(&encode(request)?).await.map_err(lost)?;
        let mut chunk = vec![0; CHUNK];
        let mut sent = 0;
        loop {
            let read = archive
                .read(&mut chunk)
                .await
                .map_err(|error| EngineError::failed("reading the archive", &error))?;
            self.send(&chunk[..read]).await.map_err(lost)?;
            sent += read as u64;
            progress(sent);
            if read == 0 {
                return self.receive().await;
            }
        }
    }

    async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame::encode(frame)?).await
    }

    async fn receive(&mut self) -> Result<Answer> {
        let length = self.stream.read_u32_le().await.map_err(|error| {
            // The kernel's error for an end that was closed with unread data, or was never accepted (unix_release_sock).
            self.was_not_received = error.kind() == io::ErrorKind::ConnectionReset;
            lost(error)
        })? as usize;
        if length > MAX_REPLY {
            return Err(EngineError::new(
                ErrorKind::Unavailable,
                format!(
                    "the launcher's answer has {length} bytes, more than the {MAX_REPLY} allowed"
                ),
            ));
        }
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).await.map_err(lost)?;
        serde_json::from_slice(&frame)
            .map_err(|error| EngineError::failed("parsing the launcher's answer", &error))
    }
}

fn encode(request: &Request) -> Result<Vec<u8>> {
    serde_json::to_vec(request).map_err(|error| EngineError::failed("writing a request", &error))
}

fn lost(error: io::Error) -> EngineError {
    EngineError::new(ErrorKind::Unavailable, format!("the launcher ended during the request: {error}"))
        .hint("check the state with `sandyard ls`, then try again; half-made sandboxes are removed automatically")
}
