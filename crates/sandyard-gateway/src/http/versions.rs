//! How each version of HTTP is spoken: by which bounds, and by which tasks.

use std::fmt;

use hyper::rt::Executor;
use hyper::{client, server};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Most headers of a request or a response.
pub(super) const MAX_HEADERS: usize = 200;

/// Longest head of a request or a response in HTTP/1.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most that is read ahead, or waits to be written, on one side of a connection in HTTP/1.
const BUFFER_BYTES: usize = 128 * 1024;

/// Most requests at once on one connection in HTTP/2. A sandbox may have many connections, and each of these bounds is memory
/// that it can take of the server's.
const MAX_STREAMS: u32 = 32;

/// Longest head of one of them, as HTTP/2 counts.
const MAX_STREAM_HEAD_BYTES: u32 = 32 * 1024;

/// What may be sent ahead on one stream of HTTP/2, and on all of them.
const WINDOWS: (u32, u32) = (256 * 1024, 256 * 1024);

/// Most that waits to be written on one stream of HTTP/2.
const STREAM_BUFFER_BYTES: usize = 64 * 1024;

/// Most streams of HTTP/2 that were given up by those who opened them before anybody looked.
const MAX_RESET_STREAMS: usize = 8;

/// Which HTTP both sides speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or 1.1.
    One,
    /// HTTP/2.
    Two,
}

impl Protocol {
    /// Its name in TLS: RFC 7301.
    pub(super) fn id(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
        }
    }

    /// The one of this name.
    pub(super) fn of(id: &[u8]) -> Option<Self> {
        let mut known = [Self::One, Self::Two].into_iter();
        known.find(|protocol| protocol.id() == id)
    }
}

/// Speaks HTTP/1 with a program. `can_half_close`: it may stop writing and still wait for an answer.
pub(super) fn server_one(can_half_close: bool) -> server::conn::http1::Builder {
    let mut builder = server::conn::http1::Builder::new();
    builder
        .half_close(can_half_close)
        .preserve_header_case(true)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES)
        // It would count the time between two requests, which is for the other side to bound.
        .header_read_timeout(None)
        .auto_date_header(false);
    builder
}

/// Speaks HTTP/1 with the other side.
pub(super) fn client_one() -> client::conn::http1::Builder {
    let mut builder = client::conn::http1::Builder::new();
    builder
        .preserve_header_case(true)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES);
    builder
}

/// Speaks HTTP/2 with a program.
pub(super) fn server_two(tasks: Tasks) -> server::conn::http2::Builder<Tasks> {
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

/// Speaks HTTP/2 with the other side.
pub(super) fn client_two(tasks: Tasks) -> client::conn::http2::Builder<Tasks> {
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

/// Runs what a connection starts beside itself, and ends it with the connection.
#[derive(Clone)]
pub(super) struct Tasks(CancellationToken);

impl Tasks {
    /// What it runs ends when the guard is dropped.
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
