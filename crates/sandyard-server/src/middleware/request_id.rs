//! A name for every request: the client's if it sends one, ours if not; always echoed.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sandyard_core::{ErrorKind, random};

use crate::error::ApiError;

/// The header of it.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The name of a request; an extension of every request.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

/// Marks a request whose client sent an id that cannot be one.
#[derive(Clone, Copy, Debug)]
struct Malformed;

/// Names the request and echoes the name.
pub(crate) async fn name(mut request: Request, next: Next) -> Response {
    let sent = request.headers().get(HEADER).map(|value| {
        let text = value.to_str().unwrap_or_default();
        is_good(text).then(|| text.to_owned())
    });
    if sent == Some(None) {
        request.extensions_mut().insert(Malformed);
    }
    let id = sent.flatten().unwrap_or_else(random_uuid);
    let value = HeaderValue::try_from(&id).expect("an id has only characters a header may have");
    request.extensions_mut().insert(RequestId(id));
    let mut response = next.run(request).await;
    response.headers_mut().insert(HEADER, value);
    response
}

/// Answers 400 to a request whose id cannot be one; inside the envelope, so that every dialect says it in its own way.
pub(crate) async fn refuse_malformed(request: Request, next: Next) -> Response {
    if request.extensions().get::<Malformed>().is_none() {
        return next.run(request).await;
    }
    ApiError::new(ErrorKind::BadRequest, "`X-Request-ID` is malformed")
        .hint("send a UUID, or up to 128 of the characters A-Z a-z 0-9 . _ -")
        .field(Some("X-Request-ID".to_owned()))
        .into_response()
}

fn is_good(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&id.len()) && id.bytes().all(is_allowed)
}

/// A random UUID (version 4).
pub(crate) fn random_uuid() -> String {
    // Ids only tell requests apart; a kernel without randomness at this point would be no reason to refuse one.
    let bytes = random::bytes().unwrap_or_default();
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_ids_are_good_ones() {
        let id = random_uuid();
        assert!(is_good(&id) && id.len() == 36, "{id}");
        assert_ne!(id, random_uuid());
    }

    #[test]
    fn ids_that_could_forge_a_log_line_are_refused() {
        for id in ["", "a b", "a\n", "é", "a;b", &"x".repeat(129)] {
            assert!(!is_good(id), "{id:?}");
        }
    }
}
