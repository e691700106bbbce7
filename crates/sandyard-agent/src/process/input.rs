//! Writing to a process.

use std::io;
use std::os::fd::OwnedFd;

use sandyard_wire::process::ProcessInput;
use sandyard_wire::{Code, ConnectError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::running::Process;
use crate::ready;

/// The agent's end of a command's input.
#[derive(Debug)]
pub(super) struct Input(AsyncFd<OwnedFd>);

impl Input {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self(ready::register(fd, Interest::WRITABLE)?))
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?)) {
                Ok(Ok(count)) => bytes = &bytes[count..],
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}

impl Process {
    /// Writes all of it, waiting for as long as the process does not read; one writer after another.
    pub(super) async fn write_input(&self, input: &ProcessInput) -> Result<(), ConnectError> {
        let bytes = match (input, self.is_terminal) {
            (ProcessInput::Stdin(bytes), false) | (ProcessInput::Pty(bytes), true) => bytes,
            (ProcessInput::Stdin(_), true) => {
                return Err(refused(
                    "the process has a terminal: send the input as pty, not as stdin",
                ));
            }
            (ProcessInput::Pty(_), false) => {
                return Err(refused("the process has no terminal"));
            }
        };
        let slot = self.input.lock().await;
        let Some(writer) = slot.as_ref() else {
            return Err(refused(
                "the process's stdin is closed or was not asked for",
            ));
        };
        let written = tokio::select! {
            written = writer.write_all(bytes) => written,
            () = self.wait_over() => Err(io::ErrorKind::BrokenPipe.into()),
        };
        self.counters.add_bytes(bytes.len());
        written.map_err(|error| {
            ConnectError::new(
                Code::Aborted,
                format!("the process takes no more input: {error}"),
            )
        })
    }

    /// Ends its input.
    pub(super) async fn close_input(&self) -> Result<(), ConnectError> {
        if self.is_terminal {
            return Err(refused("a terminal's input cannot be closed"));
        }
        self.input.lock().await.take();
        Ok(())
    }
}

fn refused(why: &str) -> ConnectError {
    ConnectError::new(Code::FailedPrecondition, why)
}
