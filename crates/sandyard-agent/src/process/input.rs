//! Writing to a process.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

use sandyard_wire::process::ProcessInput;
use sandyard_wire::{Code, ConnectError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::tracked_process::Process;
use crate::ready;

/// The agent's end of a command's input.
#[derive(Debug)]
pub(super) struct Input(AsyncFd<OwnedFd>);

impl Input {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self(ready::register(fd, Interest::WRITABLE)?))
    }

    /// Writes all bytes and counts them as they are written: the caller may be cancelled in between.
    async fn write_all(&self, mut bytes: &[u8], total: &Cell<u64>) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?)) {
                Ok(Ok(count)) => {
                    bytes = &bytes[count..];
                    total.set(total.get() + count as u64);
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}

/// How much input a process got, and which streams may write more.
#[derive(Debug, Default)]
pub(super) struct InputState {
    bytes_written: Cell<u64>,
    generation: Cell<u64>,
    taken_over: Notify,
}

/// The right of an input stream to write, until another client takes the input over.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputLease(u64);

impl InputState {
    /// Number of bytes the process got since its start.
    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written.get()
    }

    pub(super) fn lease(&self) -> InputLease {
        InputLease(self.generation.get())
    }

    /// Ends every lease: input of a killed server may still arrive, and must not mix with its successor's.
    pub(super) fn take_over(&self) {
        self.generation.set(self.generation.get() + 1);
        self.taken_over.notify_waiters();
    }

    /// Waits until the lease has ended.
    async fn ended(&self, lease: Option<InputLease>) {
        loop {
            let taken_over = self.taken_over.notified();
            if lease.is_some_and(|lease| lease.0 != self.generation.get()) {
                return;
            }
            taken_over.await;
        }
    }
}

impl Process {
    /// Writes all input; waits while the process does not read. Writers take turns.
    ///
    /// With a lease it stops when the lease ends.
    pub(super) async fn write_input(
        &self,
        input: &ProcessInput,
        lease: Option<InputLease>,
    ) -> Result<(), ConnectError> {
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
                "the process's stdin is closed, or it was started without stdin",
            ));
        };
        let written = tokio::select! {
            biased;
            () = self.input_state.ended(lease) => {
                return Err(ConnectError::new(Code::Aborted, "another client has taken over the input"));
            }
            written = writer.write_all(bytes, &self.input_state.bytes_written) => written,
            () = self.wait_exited() => Err(io::ErrorKind::BrokenPipe.into()),
        };
        self.counters.add_bytes(bytes.len());
        written.map_err(|error| {
            ConnectError::new(
                Code::Aborted,
                format!("cannot write to the process's input: {error}"),
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

fn refused(reason: &str) -> ConnectError {
    ConnectError::new(Code::FailedPrecondition, reason)
}
