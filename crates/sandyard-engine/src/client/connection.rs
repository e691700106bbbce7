//! One connection to the launcher, served by a worker of its own.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::error::{EngineError, ErrorKind, Result};
use crate::frame;
use crate::protocol::{Answer, MAX_REPLY, Request};

/// Archive data sent at once.
const CHUNK: usize = 256 << 10;

/// One connection: one request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    is_unheard: bool,
}

impl Connection {
    /// Connects to the launcher's socket, however long its path is.
    pub(super) async fn open(socket: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = std::fs::File::open(parent)?;
        let path = format!(
            "/proc/self/fd/{}/{}",
            folder.as_raw_fd(),
            name.to_string_lossy()
        );
        Ok(Self {
            stream: UnixStream::connect(path).await?,
            is_unheard: false,
        })
    }

    /// The process that listens on the socket, as the kernel tells; `None`: one that cannot be seen from here.
    pub(super) fn listener_pid(&self) -> Option<i32> {
        let peer = self.stream.peer_cred().ok()?;
        peer.pid().filter(|pid| *pid > 0)
    }

    /// Says whether the other end has hung up. Nothing is ever sent unasked, so anything to read means the end.
    pub(super) fn is_closed(&self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Says whether nobody has read the request that got lost, so that nothing was done of it.
    pub(super) fn is_unheard(&self) -> bool {
        self.is_unheard
    }

    /// Asks and waits for the answer.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<Answer> {
        let frame = encode(request)?;
        // Of one that could not even be sent nobody has the end.
        self.is_unheard = true;
        self.send(&frame).await.map_err(lost)?;
        self.is_unheard = false;
        self.receive().await
    }

    /// Asks, sends the archive, and waits for the answer.
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
            // The kernel's word for an end that was closed with something unread, or never accepted (unix_release_sock).
            self.is_unheard = error.kind() == io::ErrorKind::ConnectionReset;
            lost(error)
        })? as usize;
        if length > MAX_REPLY {
            return Err(EngineError::new(
                ErrorKind::Unavailable,
                format!("the launcher's answer has {length} bytes"),
            ));
        }
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).await.map_err(lost)?;
        serde_json::from_slice(&frame)
            .map_err(|error| EngineError::failed("understanding the launcher", &error))
    }
}

fn encode(request: &Request) -> Result<Vec<u8>> {
    serde_json::to_vec(request).map_err(|error| EngineError::failed("writing a request", &error))
}

fn lost(error: io::Error) -> EngineError {
    EngineError::new(ErrorKind::Unavailable, format!("the launcher went away during the request: {error}"))
        .hint("look at what is there with `sandyard ls`, then try again; a half-made sandbox is removed by itself")
}
