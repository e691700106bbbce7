//! A response that is the same for everybody, compressed once for clients that accept gzip.
//!
//! Only such responses are compressed: the output of commands would be delayed, and a secret beside text of an attacker could be guessed by
//! the length.

use std::io::Write;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The body in both forms.
#[derive(Debug)]
pub(crate) struct StaticPage {
    media_type: HeaderValue,
    plain: Bytes,
    compressed: Bytes,
}

impl StaticPage {
    pub(crate) fn new(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        let plain = body.into();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let result = encoder.write_all(&plain).and_then(|()| encoder.finish());
        Self {
            media_type: HeaderValue::from_static(media_type),
            plain,
            compressed: result.expect("a vector takes all bytes").into(),
        }
    }

    /// The response to a request with these headers.
    pub(crate) fn respond(&self, request: &HeaderMap) -> Response {
        let headers = [
            (CONTENT_TYPE, self.media_type.clone()),
            (VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if !accepts_gzip(request) {
            return (headers, self.plain.clone()).into_response();
        }
        let encoding = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        (headers, [encoding], self.compressed.clone()).into_response()
    }
}

/// Whether a list such as `br, gzip;q=0.5` names gzip (RFC 9110, section 12.5.3). A weight of zero refuses it.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let lists = request.get_all(ACCEPT_ENCODING).iter();
    let mut entries = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    entries.any(|entry| {
        let (name, weight) = entry.split_once(';').unwrap_or((entry, "q=1"));
        let weight = weight.trim().strip_prefix("q=").unwrap_or_default();
        name.trim().eq_ignore_ascii_case("gzip")
            && weight.parse().is_ok_and(|number: f32| number > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_by_name_unless_its_weight_is_zero() {
        for (list, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip; q=0", false),
            ("gzip;q=0.0, br", false),
            ("gzip;q=x", false),
            ("identity", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, list.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{list}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
