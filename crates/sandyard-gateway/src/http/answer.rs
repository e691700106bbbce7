//! The gateway's own answers.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use sandyard_core::network::Denial;

/// A response body for the program.
pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// Why a request is not forwarded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is for another host, with this name.
    OtherHost(String),
    /// It is for a denied host.
    Denied(Denial),
    /// Another reason, with the answer to the program.
    Answer(StatusCode, String),
}

impl Refusal {
    /// Refuses with this answer.
    pub(super) fn answer(status: StatusCode, text: String) -> Self {
        Self::Answer(status, text)
    }

    /// Refuses a request that cannot be changed as the policy says.
    pub(super) fn bad_gateway(text: String) -> Self {
        Self::Answer(StatusCode::BAD_GATEWAY, text)
    }
}

/// A plain-text answer of one line. In HTTP/1 the connection ends after it.
pub(super) fn line(version: Version, status: StatusCode, text: &str) -> Response<Body> {
    let text = format!("sandyard gateway: {text}\n");
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    if version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
