//! Redacting responses: a secret that a host sends back reaches the program as its placeholder.
//!
//! Echo services, error pages and redirects return what they were sent. So headers and body of every response of a host with a
//! secret are searched for the value, in all [`encodings`](super::encodings).
//!
//! The sizes and times of the pieces that a program gets reveal nothing about a value before all of it has arrived: see
//! [`ReplaceStream`]. Otherwise a host that echoes a program's data would help it to guess a secret byte by byte.
//!
//! Limits: a host may encode the value in another way, compress its answer against the request, send the value in parts (ranges,
//! long pauses in the middle) or over an upgraded connection. A secret is therefore bound only to hosts that are trusted with it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;

use super::answer::Body;
use super::delayed_failure::DelayedFailure;
use super::redacting_body::RedactingBody;
use super::replace::{Length, Replacements};
use super::replace_stream::ReplaceStream;

/// Bodies with an announced length up to this are read whole, so that the placeholder fits at its full length.
const MAX_WHOLE_BYTES: u64 = 64 * 1024;

/// Redacts secrets in the response to a request of this method.
pub(super) async fn redact(
    method: &Method,
    response: Response<Incoming>,
    replacements: Arc<Replacements>,
) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if replacements.is_empty() {
        return Response::from_parts(head, DelayedFailure::new(body).boxed_unsync());
    }
    redact_headers(&mut head.headers, &replacements);
    let reason = head.extensions.get::<ReasonPhrase>();
    if reason.is_some_and(|reason| replacements.replace_all(reason.as_bytes()).is_some()) {
        head.extensions.remove::<ReasonPhrase>();
    }
    // Without a body, `Content-Length` has another meaning.
    let is_empty = *method == Method::HEAD
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        )
        || body.is_end_stream();
    // Regardless of `Content-Encoding`: it may be wrong, and a search does not harm compressed data.
    if is_empty {
        return Response::from_parts(head, DelayedFailure::new(body).boxed_unsync());
    }
    let announced = body.size_hint().exact();
    let is_part = head.status == StatusCode::PARTIAL_CONTENT;
    let body = match announced {
        Some(bytes) if bytes <= MAX_WHOLE_BYTES && !is_part => {
            let (body, bytes) = redact_whole(body, replacements).await;
            if let (Some(bytes), true) = (bytes, head.headers.contains_key(CONTENT_LENGTH)) {
                head.headers
                    .insert(CONTENT_LENGTH, HeaderValue::from(bytes));
            }
            body
        }
        Some(_) => DelayedFailure::new(RedactingBody::new(body, replacements, Length::Fixed))
            .boxed_unsync(),
        // Partial content without a length is `multipart/byteranges`, whose boundaries do not count bytes.
        None => DelayedFailure::new(RedactingBody::new(body, replacements, Length::Variable))
            .boxed_unsync(),
    };
    Response::from_parts(head, body)
}

fn redact_headers(headers: &mut HeaderMap, replacements: &Replacements) {
    for value in headers.values_mut() {
        if let Some(made) = replacements.replace_all(value.as_bytes()) {
            let made = HeaderValue::from_bytes(&made);
            *value = made.unwrap_or_else(|_| HeaderValue::from_static(""));
        }
    }
}

/// Reads a short body and redacts secrets in it. Also returns its length, if it arrived completely.
async fn redact_whole(
    mut body: Incoming,
    replacements: Arc<Replacements>,
) -> (Body, Option<usize>) {
    let mut data = BytesMut::new();
    let mut last = None;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(piece)) => data.extend_from_slice(&piece),
            Ok(Err(frame)) => last = Some(Ok(with_trailers_redacted(frame, &replacements))),
            Err(error) => {
                last = Some(Err(error));
                break;
            }
        }
    }
    // An aborted body is forwarded as far as it certainly holds no part of a secret, with the announced length.
    let is_broken = matches!(last, Some(Err(_)));
    let data = match is_broken {
        true => ReplaceStream::new(replacements, Length::Fixed).push(&data),
        false => replacements
            .replace_all(&data)
            .map_or_else(|| data.freeze(), Bytes::from),
    };
    let bytes = (!is_broken).then_some(data.len());
    let frames = [Some(Ok(Frame::data(data))), last];
    let body = StreamBody::new(stream::iter(frames.into_iter().flatten()));
    (DelayedFailure::new(body).boxed_unsync(), bytes)
}

/// The frame with redacted trailers, if it has trailers.
pub(super) fn with_trailers_redacted(
    frame: Frame<Bytes>,
    replacements: &Replacements,
) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            redact_headers(&mut trailers, replacements);
            Frame::trailers(trailers)
        }
        Err(frame) => frame,
    }
}
