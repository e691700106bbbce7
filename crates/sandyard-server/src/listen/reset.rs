//! A socket that can be closed with a reset.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket that sends a reset when it is dropped after its switch was set, instead of an orderly end.
#[derive(Debug)]
pub(super) struct ResetOnClose {
    socket: TcpStream,
    switch: ResetSwitch,
}

/// Decides how a socket is closed.
#[derive(Clone, Debug, Default)]
pub(super) struct ResetSwitch(Arc<AtomicBool>);

impl ResetSwitch {
    /// Lets the socket be closed with a reset.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ResetOnClose {
    pub(super) fn new(socket: TcpStream) -> (Self, ResetSwitch) {
        let switch = ResetSwitch::default();
        let socket = Self {
            socket,
            switch: switch.clone(),
        };
        (socket, switch)
    }
}

impl Drop for ResetOnClose {
    fn drop(&mut self) {
        if self.switch.0.load(Ordering::Relaxed) {
            // If that fails, the client sees an early end.
            let _ = self.socket.set_zero_linger();
        }
    }
}

impl AsyncRead for ResetOnClose {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for ResetOnClose {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
