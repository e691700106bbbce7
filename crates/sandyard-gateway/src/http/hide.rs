//! The way back: a secret that a host sends back arrives as its placeholder.
//!
//! Echo services, error pages and redirects show what they were sent. So everything that a host with a secret answers is looked
//! through for the value, in the forms of [`forms`](super::forms), headers and body alike.
//!
//! What remains: a host that encodes the value in yet another way, compresses its answer though it was asked not to, sends the
//! value in parts (ranges) or over an upgraded connection. A secret is therefore bound only to hosts that are trusted with it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;

use super::answer::Body;
use super::late::Late;
use super::swap::{Length, Swaps};
use super::swap_stream::SwapStream;

/// Bodies that say they are no longer than this are read whole, so that the placeholder fits in at its full length.
const MAX_WHOLE_BYTES: u64 = 64 * 1024;

/// Hides secrets in the response to a request of this method.
pub(super) async fn hide(
    method: &Method,
    response: Response<Incoming>,
    swaps: Arc<Swaps>,
) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if swaps.is_empty() {
        return Response::from_parts(head, Late::new(body).boxed_unsync());
    }
    hide_in_headers(&mut head.headers, &swaps);
    let reason = head.extensions.get::<ReasonPhrase>();
    if reason.is_some_and(|reason| swaps.whole(reason.as_bytes()).is_some()) {
        head.extensions.remove::<ReasonPhrase>();
    }
    let coding = head.headers.get(CONTENT_ENCODING);
    let is_coded =
        coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    // The `Content-Length` of what has no body speaks of something else.
    let is_empty = *method == Method::HEAD
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        )
        || body.is_end_stream();
    if is_coded || is_empty {
        return Response::from_parts(head, Late::new(body).boxed_unsync());
    }
    let told = body.size_hint().exact();
    let is_part = head.status == StatusCode::PARTIAL_CONTENT;
    let body = match told {
        Some(bytes) if bytes <= MAX_WHOLE_BYTES && !is_part => {
            let (body, bytes) = hide_whole(body, swaps).await;
            if let (Some(bytes), true) = (bytes, head.headers.contains_key(CONTENT_LENGTH)) {
                head.headers
                    .insert(CONTENT_LENGTH, HeaderValue::from(bytes));
            }
            body
        }
        Some(_) => Late::new(HidingBody::new(body, swaps, Length::Kept)).boxed_unsync(),
        // Parts of a text without a length are those of `multipart/byteranges`, whose boundaries do not count bytes.
        None => Late::new(HidingBody::new(body, swaps, Length::Free)).boxed_unsync(),
    };
    Response::from_parts(head, body)
}

fn hide_in_headers(headers: &mut HeaderMap, swaps: &Swaps) {
    for value in headers.values_mut() {
        if let Some(made) = swaps.whole(value.as_bytes()) {
            let made = HeaderValue::from_bytes(&made);
            *value = made.unwrap_or_else(|_| HeaderValue::from_static(""));
        }
    }
}

/// Reads a short body and hides secrets in it. Gives its length as well, if all of it came.
async fn hide_whole(mut body: Incoming, swaps: Arc<Swaps>) -> (Body, Option<usize>) {
    let mut data = BytesMut::new();
    let mut last = None;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(piece)) => data.extend_from_slice(&piece),
            Ok(Err(frame)) => last = Some(Ok(with_trailers_hidden(frame, &swaps))),
            Err(error) => {
                last = Some(Err(error));
                break;
            }
        }
    }
    // What broke off is passed on as far as it came, under the length that was announced.
    let is_broken = matches!(last, Some(Err(_)));
    let data = match is_broken {
        true => {
            let mut stream = SwapStream::new(swaps, Length::Kept);
            let mut data = BytesMut::from(stream.push(data.freeze()));
            data.extend_from_slice(&stream.finish());
            data.freeze()
        }
        false => swaps
            .whole(&data)
            .map_or_else(|| data.freeze(), Bytes::from),
    };
    let bytes = (!is_broken).then_some(data.len());
    let frames = [Some(Ok(Frame::data(data))), last];
    let body = StreamBody::new(stream::iter(frames.into_iter().flatten()));
    (Late::new(body).boxed_unsync(), bytes)
}

fn with_trailers_hidden(frame: Frame<Bytes>, swaps: &Swaps) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            hide_in_headers(&mut trailers, swaps);
            Frame::trailers(trailers)
        }
        Err(frame) => frame,
    }
}

/// A body in which secrets are hidden as it passes.
#[derive(Debug)]
struct HidingBody {
    inner: Incoming,
    swaps: Arc<Swaps>,
    stream: SwapStream,
    length: Length,
    /// What comes after the data, kept until what was held back is out.
    last: Option<Frame<Bytes>>,
    is_over: bool,
}

impl HidingBody {
    fn new(inner: Incoming, swaps: Arc<Swaps>, length: Length) -> Self {
        Self {
            inner,
            stream: SwapStream::new(swaps.clone(), length),
            swaps,
            length,
            last: None,
            is_over: false,
        }
    }

    /// There is no more data: gives what was held back, and keeps what came instead of data.
    fn finish(&mut self, last: Option<Frame<Bytes>>) -> Option<Frame<Bytes>> {
        self.is_over = true;
        self.last = last.map(|frame| with_trailers_hidden(frame, &self.swaps));
        let held = self.stream.finish();
        match held.is_empty() {
            true => self.last.take(),
            false => Some(Frame::data(held)),
        }
    }
}

impl http_body::Body for HidingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        while !this.is_over {
            let Some(frame) = ready!(Pin::new(&mut this.inner).poll_frame(cx)) else {
                return Poll::Ready(this.finish(None).map(Ok));
            };
            match frame?.into_data() {
                Ok(piece) => {
                    let piece = this.stream.push(piece);
                    if !piece.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(piece))));
                    }
                }
                Err(other) => return Poll::Ready(this.finish(Some(other)).map(Ok)),
            }
        }
        Poll::Ready(this.last.take().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        // Whoever sends it on goes by the header anyhow; this is for bodies that have not begun.
        match self.length {
            Length::Kept => self.inner.size_hint(),
            Length::Free => SizeHint::default(),
        }
    }
}
