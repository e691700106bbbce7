//! Writing files.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Frame, SizeHint};
use sandyard_wire::http::WrittenFile;
use sandyard_wire::routes::{self, content_type};
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use crate::body::{self, RequestBody};
use crate::call::{finish, parse};
use crate::client::AgentClient;
use crate::error::{ClientError, Result};

/// Bytes read from the caller's reader at a time.
const READ_SIZE: usize = 128 << 10;

impl AgentClient {
    /// Writes a whole file, with its parent directories; owned by the user, mode 0644 if new.
    pub async fn write_file(&self, path: &str, content: impl Into<Bytes>) -> Result<WrittenFile> {
        self.upload(path, body::full(content)).await
    }

    /// Writes a file from a reader to its end, holding only a piece of it at a time.
    pub async fn write_file_from(
        &self,
        path: &str,
        reader: impl AsyncRead + Send + 'static,
    ) -> Result<WrittenFile> {
        let pieces = ReaderStream::with_capacity(reader, READ_SIZE).map_ok(Frame::data);
        self.upload(path, StreamBody::new(pieces).boxed_unsync())
            .await
    }

    async fn upload(&self, path: &str, content: RequestBody) -> Result<WrittenFile> {
        let progress = Arc::new(Progress::default());
        let watched = WatchedBody {
            content,
            progress: Arc::clone(&progress),
        };
        let builder = self
            .request(Method::POST, &self.file_uri(path))
            .header(http::header::CONTENT_TYPE, content_type::OCTET_STREAM);
        let request = finish(builder, watched.boxed_unsync())?;
        let work = async {
            let (_sender, reply) = self.send_new(routes::FILES, request).await?;
            let (head, body) = reply.into_parts();
            let limits = self.limits();
            let text = body::collect(
                routes::FILES,
                body,
                limits.max_body_len,
                limits.max_header_len,
            )
            .await?;
            let written: Vec<WrittenFile> =
                parse(routes::FILES, head.status, StatusCode::OK, &text)?;
            written
                .into_iter()
                .next()
                .ok_or_else(|| ClientError::protocol(routes::FILES, "no file was written"))
        };
        tokio::pin!(work);
        let Some(silence) = self.limits().silence_timeout else {
            return work.await;
        };
        tokio::select! {
            result = &mut work => result,
            () = progress.stalls(silence) => Err(ClientError::Timeout { call: routes::FILES, after: silence }),
        }
    }
}

/// How far an upload has come.
#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    /// Whether it is the caller's reader that has nothing yet; then the agent is not to blame.
    waits_for_source: AtomicBool,
}

impl Progress {
    /// Waits until the agent has taken nothing for a whole period.
    async fn stalls(&self, period: Duration) {
        let mut before = self.bytes.load(Ordering::Relaxed);
        loop {
            tokio::time::sleep(period).await;
            let now = self.bytes.load(Ordering::Relaxed);
            if now == before && !self.waits_for_source.load(Ordering::Relaxed) {
                return;
            }
            before = now;
        }
    }
}

/// A body that notes its progress as the connection takes it.
struct WatchedBody {
    content: RequestBody,
    progress: Arc<Progress>,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let polled = Pin::new(&mut self.content).poll_frame(cx);
        self.progress
            .waits_for_source
            .store(polled.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let len = frame.data_ref().map_or(0, Bytes::len);
            self.progress.bytes.fetch_add(len as u64, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
