//! A form's bytes, as long as they lead somewhere.
//!
//! The parser of forms keeps what it cannot make sense of yet, without an end, and looks through all of it again with
//! every piece that comes. So it gets one piece at a time, and no more once a number of them made no difference.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;

/// Bytes after which a field or some content must have come, and the longest piece.
pub(super) const MAX_IDLE: usize = 64 << 10;

/// How many bytes went by since a form last led somewhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<AtomicUsize>);

impl Progress {
    /// Notes that a field or some content has come.
    pub(super) fn note(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Says whether too many bytes led nowhere.
    pub(super) fn is_stuck(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_IDLE
    }
}

/// The bytes of a form.
pub(super) struct Paced<S> {
    pieces: S,
    rest: Bytes,
    /// A piece was given and not looked at yet.
    is_given: bool,
    progress: Progress,
}

impl<S> Paced<S> {
    pub(super) fn new(pieces: S, progress: Progress) -> Self {
        Self {
            pieces,
            rest: Bytes::new(),
            is_given: false,
            progress,
        }
    }
}

impl<S, E> Stream for Paced<S>
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
            // The parser takes all it can get before it looks at any of it.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if this.progress.is_stuck() {
            return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
        }
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.pieces).poll_next(context)) {
                Some(Ok(piece)) => this.rest = piece,
                Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                None => return Poll::Ready(None),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(MAX_IDLE));
        this.progress.0.fetch_add(piece.len(), Ordering::Relaxed);
        this.is_given = true;
        Poll::Ready(Some(Ok(piece)))
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
            .body(Body::from_stream(Paced::new(pieces, progress.clone())))
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
        progress.note();
        let mut content = Vec::new();
        while let Some(piece) = field.chunk().await.unwrap() {
            progress.note();
            assert!(piece.len() <= 2 * MAX_IDLE);
            content.extend_from_slice(&piece);
        }
        assert!(content == long);
    }

    #[tokio::test]
    async fn headers_without_an_end_are_not_kept() {
        let mut pieces = vec![b"--x\r\nContent-Disposition: form-data; name=\"".to_vec()];
        pieces.extend(std::iter::repeat_n(vec![b'a'; MAX_IDLE], 10));
        let (mut form, progress) = form(pieces).await;
        form.next_field().await.unwrap_err();
        assert!(progress.is_stuck());
    }
}
