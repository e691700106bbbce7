//! Bounds the bytes that a multipart parser buffers.
//!
//! The parser buffers input that it cannot parse yet, without a limit, and scans all of it again with every chunk. So it gets one
//! chunk at a time, and none after a number of bytes without a field or content.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;

/// Largest number of bytes without a field or content, and the largest chunk.
pub(super) const MAX_IDLE: usize = 64 << 10;

/// Counts the bytes since the last field or content.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<AtomicUsize>);

impl Progress {
    /// Records that the parser returned a field or content.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Says whether there were too many bytes without a field or content.
    pub(super) fn is_stuck(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_IDLE
    }
}

/// The bytes of a form.
pub(super) struct BoundedForm<S> {
    chunks: S,
    rest: Bytes,
    /// Whether the parser has got a chunk that it has not parsed yet.
    is_given: bool,
    progress: Progress,
}

impl<S> BoundedForm<S> {
    pub(super) fn new(chunks: S, progress: Progress) -> Self {
        Self {
            chunks,
            rest: Bytes::new(),
            is_given: false,
            progress,
        }
    }
}

impl<S, E> Stream for BoundedForm<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Item = io::Result<Bytes>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Bytes>>> {
        let this = &mut *self;
        if std::mem::take(&mut this.is_given) {
            // The parser reads everything that is available before it parses.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if this.progress.is_stuck() {
            return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
        }
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.chunks).poll_next(context)) {
                Some(Ok(chunk)) => this.rest = chunk,
                Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                None => return Poll::Ready(None),
            }
        }
        let chunk = this.rest.split_to(this.rest.len().min(MAX_IDLE));
        this.progress.0.fetch_add(chunk.len(), Ordering::Relaxed);
        this.is_given = true;
        Poll::Ready(Some(Ok(chunk)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;
    use axum::extract::{FromRequest, Multipart, Request};
    use futures_util::{StreamExt, stream};

    use super::*;

    async fn form(pieces: Vec<Vec<u8>>) -> (Multipart, Progress) {
        let progress = Progress::default();
        let pieces = stream::iter(pieces).map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        let request = Request::builder()
            .header("content-type", "multipart/form-data; boundary=x")
            .body(Body::from_stream(BoundedForm::new(
                pieces,
                progress.clone(),
            )))
            .unwrap();
        let form = Multipart::from_request(request, &()).await.unwrap();
        (form, progress)
    }

    const HEAD: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";

    #[tokio::test]
    async fn content_of_any_length_passes() {
        let long = vec![b'a'; 10 * MAX_IDLE];
        let pieces = [HEAD.to_vec(), long.clone(), b"\r\n--x--\r\n".to_vec()];
        let (mut form, progress) = form(vec![pieces.concat()]).await;
        let mut field = form.next_field().await.unwrap().unwrap();
        progress.reset();
        let mut content = Vec::new();
        while let Some(piece) = field.chunk().await.unwrap() {
            progress.reset();
            assert!(piece.len() <= 2 * MAX_IDLE);
            content.extend_from_slice(&piece);
        }
        assert!(content == long);
    }

    #[tokio::test]
    async fn headers_without_an_end_are_refused() {
        let mut pieces = vec![b"--x\r\nContent-Disposition: form-data; name=\"".to_vec()];
        pieces.extend(std::iter::repeat_n(vec![b'a'; MAX_IDLE], 10));
        let (mut form, progress) = form(pieces).await;
        form.next_field().await.unwrap_err();
        assert!(progress.is_stuck());
    }
}
