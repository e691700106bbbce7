//! The way back: a secret that a host sends back arrives as its placeholder.
//!
//! Echo services, error pages and redirects show what they were sent. So everything that a host with a secret answers is looked
//! through for the value, in the forms of [`forms`](super::encodings), headers and body alike.
//!
//! What a program gets, in which portions and when, tells nothing of a value before all of it is there: see [`ReplaceStream`].
//! Else a host that sends what a program likes would help it to guess a secret byte by byte.
//!
//! What remains: a host that encodes the value in yet another way, compresses its answer though it was asked not to, sends the
//! value in parts (ranges, long pauses in the middle) or over an upgraded connection. A secret is therefore bound only to hosts
//! that are trusted with it.

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

/// Bodies that say they are no longer than this are read whole, so that the placeholder fits in at its full length.
const MAX_WHOLE_BYTES: u64 = 64 * 1024;

/// Hides secrets in the response to a request of this method.
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
    if reason.is_some_and(|reason| replacements.whole(reason.as_bytes()).is_some()) {
        head.extensions.remove::<ReasonPhrase>();
    }
    // The `Content-Length` of what has no body speaks of something else.
    let is_empty = *method == Method::HEAD
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        )
        || body.is_end_stream();
    // Whatever `Content-Encoding` says: it may not be true, and what is compressed is not harmed by a search.
    if is_empty {
        return Response::from_parts(head, DelayedFailure::new(body).boxed_unsync());
    }
    let told = body.size_hint().exact();
    let is_part = head.status == StatusCode::PARTIAL_CONTENT;
    let body =
        match told {
            Some(bytes) if bytes <= MAX_WHOLE_BYTES && !is_part => {
                let (body, bytes) = redact_whole(body, replacements).await;
                if let (Some(bytes), true) = (bytes, head.headers.contains_key(CONTENT_LENGTH)) {
                    head.headers
                        .insert(CONTENT_LENGTH, HeaderValue::from(bytes));
                }
                body
            }
            Some(_) => DelayedFailure::new(RedactingBody::new(body, replacements, Length::Kept))
                .boxed_unsync(),
            // Parts of a text without a length are those of `multipart/byteranges`, whose boundaries do not count bytes.
            None => DelayedFailure::new(RedactingBody::new(body, replacements, Length::Free))
                .boxed_unsync(),
        };
    Response::from_parts(head, body)
}

fn redact_headers(headers: &mut HeaderMap, replacements: &Replacements) {
    for value in headers.values_mut() {
        if let Some(made) = replacements.whole(value.as_bytes()) {
            let made = HeaderValue::from_bytes(&made);
            *value = made.unwrap_or_else(|_| HeaderValue::from_static(""));
        }
    }
}

/// Reads a short body and hides secrets in it. Gives its length as well, if all of it came.
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
    // What broke off is passed on as far as it surely holds no part of a secret, under the length that was announced.
    let is_broken = matches!(last, Some(Err(_)));
    let data = match is_broken {
        true => ReplaceStream::new(replacements, Length::Kept).push(&data),
        false => replacements
            .whole(&data)
            .map_or_else(|| data.freeze(), Bytes::from),
    };
    let bytes = (!is_broken).then_some(data.len());
    let frames = [Some(Ok(Frame::data(data))), last];
    let body = StreamBody::new(stream::iter(frames.into_iter().flatten()));
    (DelayedFailure::new(body).boxed_unsync(), bytes)
}

/// The same with secrets hidden, if it holds trailers.
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
