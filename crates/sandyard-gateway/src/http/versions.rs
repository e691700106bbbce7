//! Settings of HTTP/1 and HTTP/2 connections: bounds and tasks.

use std::fmt;

use hyper::rt::Executor;
use hyper::{client, server};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Maximum number of headers of a request or a response.
pub(super) const MAX_HEADERS: usize = 200;

/// Maximum size of the head of a request or a response in HTTP/1, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Maximum size of the read and write buffers of one side of a connection in HTTP/1, in bytes.
const BUFFER_BYTES: usize = 128 * 1024;

/// Maximum number of concurrent requests on one connection in HTTP/2. A sandbox may have many connections, and each of these
/// bounds is server memory that it can use.
const MAX_STREAMS: u32 = 32;

/// Maximum size of a head in HTTP/2, in bytes.
const MAX_STREAM_HEAD_BYTES: u32 = 32 * 1024;

/// Receive windows of one HTTP/2 stream, and of a connection, in bytes.
const WINDOWS: (u32, u32) = (256 * 1024, 256 * 1024);

/// Maximum size of the write buffer of one HTTP/2 stream, in bytes.
const STREAM_BUFFER_BYTES: usize = 64 * 1024;

/// Maximum number of HTTP/2 streams that were reset before they were accepted.
const MAX_RESET_STREAMS: usize = 8;

/// The version of HTTP on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// Its ALPN id (RFC 7301).
    pub(super) fn id(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// Finds the version by its ALPN id.
    pub(super) fn of(id: &[u8]) -> Option<Self> {
        let mut protocols = [Self::Http1, Self::Http2].into_iter();
        protocols.find(|protocol| protocol.id() == id)
    }
}

/// HTTP/1 for a program. `can_half_close`: it may close its sending side and still wait for an answer.
pub(super) fn http1_server(can_half_close: bool) -> server::conn::http1::Builder {
    let mut builder = server::conn::http1::Builder::new();
    builder
        .half_close(can_half_close)
        .preserve_header_case(true)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES)
        // It would limit the time between two requests, which the remote side does.
        .header_read_timeout(None)
        .auto_date_header(false);
    builder
}

/// HTTP/1 for the remote side.
pub(super) fn http1_client() -> client::conn::http1::Builder {
    let mut builder = client::conn::http1::Builder::new();
    builder
        .preserve_header_case(true)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES);
    builder
}

/// HTTP/2 for a program.
pub(super) fn http2_server(tasks: Tasks) -> server::conn::http2::Builder<Tasks> {
    let mut builder = server::conn::http2::Builder::new(tasks);
    builder
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_STREAM_HEAD_BYTES)
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .auto_date_header(false);
    builder
}

/// HTTP/2 for the remote side.
pub(super) fn http2_client(tasks: Tasks) -> client::conn::http2::Builder<Tasks> {
    let mut builder = client::conn::http2::Builder::new(tasks);
    builder
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_STREAM_HEAD_BYTES)
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS);
    builder
}

/// Runs the background tasks of a connection, and ends them with it.
#[derive(Clone)]
pub(super) struct Tasks(CancellationToken);

impl Tasks {
    /// Tasks end when the guard is dropped.
    pub(super) fn new() -> (Self, DropGuard) {
        let token = CancellationToken::new();
        (Self(token.clone()), token.drop_guard())
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        tokio::spawn(self.0.clone().run_until_cancelled_owned(task));
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tasks")
    }
}
