//! Bodies of requests and answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sandyard_wire::{Code, ConnectError};

/// Pieces of an answer, produced when the client can take them.
type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>>>>;

/// The body of an answer.
pub(crate) enum Body {
    /// The whole content.
    Full(Option<Bytes>),
    /// Produced piece by piece, with the announced length if it is known.
    Stream(Pieces, Option<u64>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Full(None)
    }

    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Some(bytes.into()))
    }

    /// A body whose pieces `next` produces from a state, until it returns `None`.
    pub(crate) fn from_frames<S: 'static>(
        state: S,
        next: impl AsyncFnMut(&mut S) -> Option<Bytes> + 'static,
    ) -> Self {
        let pieces = stream::unfold((state, next), |(mut state, mut next)| async move {
            let piece = next(&mut state).await?;
            Some((Ok(piece), (state, next)))
        });
        Self::Stream(Box::pin(pieces), None)
    }

    /// A body of pieces that may fail. A failure closes the connection, so that the client notices.
    pub(crate) fn from_pieces(
        pieces: impl Stream<Item = io::Result<Bytes>> + 'static,
        length: Option<u64>,
    ) -> Self {
        Self::Stream(Box::pin(pieces), length)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(pieces, _) => pieces
                .as_mut()
                .poll_next(cx)
                .map(|next| next.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_, Some(length)) => SizeHint::with_exact(*length),
            Self::Stream(_, None) => SizeHint::default(),
        }
    }
}

/// How long a client may take between two pieces of its body.
pub(crate) const IDLE: Duration = Duration::from_secs(120);

/// Maximum number of bytes that are read only to be discarded.
const MAX_DRAINED_BYTES: u64 = 1024 * 1024;

/// How long an answer waits for bytes that are read only to be discarded.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The body of a request.
#[derive(Debug)]
pub(crate) struct RequestBody {
    incoming: Incoming,
    is_at_end: bool,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self {
            is_at_end: incoming.is_end_stream(),
            incoming,
        }
    }

    /// The next piece, without a time limit; `None` at the end.
    pub(crate) async fn next_piece(&mut self) -> Result<Option<Bytes>, ConnectError> {
        loop {
            match self.incoming.frame().await {
                None => {
                    self.is_at_end = true;
                    return Ok(None);
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(_)) => {
                    return Err(ConnectError::new(
                        Code::Canceled,
                        "the request's body ended early: the connection broke",
                    ));
                }
            }
        }
    }

    /// The next piece, within [`IDLE`].
    pub(crate) async fn next_piece_in_time(&mut self) -> Result<Option<Bytes>, ConnectError> {
        tokio::time::timeout(IDLE, self.next_piece())
            .await
            .unwrap_or_else(|_| {
                Err(ConnectError::new(
                    Code::DeadlineExceeded,
                    "the request's body did not arrive in time",
                ))
            })
    }

    /// The whole body, up to a limit in bytes.
    pub(crate) async fn collect(&mut self, max: usize) -> Result<Vec<u8>, ConnectError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next_piece_in_time().await? {
            if all.len() + piece.len() > max {
                return Err(ConnectError::new(
                    Code::ResourceExhausted,
                    format!("the request's body is larger than {max} bytes"),
                ));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// Whether the whole body was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Reads the rest if it is short and arrives soon; true when the whole body was read.
    ///
    /// A body of unknown length may be a stream that stays open until its sender has the answer, so it is not read.
    pub(crate) async fn drain(&mut self) -> bool {
        let rest = self.incoming.size_hint().exact();
        if !self.is_at_end && rest.is_some_and(|rest| rest <= MAX_DRAINED_BYTES) {
            let rest = async { while let Ok(Some(_)) = self.next_piece().await {} };
            let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
        }
        self.is_at_end
    }
}
