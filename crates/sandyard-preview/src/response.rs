//! The response as the client sees it.

use http::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, LOCATION,
    STRICT_TRANSPORT_SECURITY, TRANSFER_ENCODING,
};

use crate::target::Isolation;
use crate::{cookie, hop, request};

/// Gives a page an origin of its own. Scripts, forms and windows work; the server's cookies and storage are out of reach.
const OPAQUE_ORIGIN: HeaderValue = HeaderValue::from_static(
    "sandbox allow-downloads allow-forms allow-modals allow-pointer-lock allow-popups allow-presentation allow-scripts",
);

/// Headers that speak for a whole origin, which on a shared host is not the sandbox's to speak for.
pub(crate) const ORIGIN_WIDE: [HeaderName; 14] = [
    // Would wipe everybody's cookies and storage.
    HeaderName::from_static("clear-site-data"),
    // Would lock clients out of a server without TLS.
    STRICT_TRANSPORT_SECURITY,
    // Would let a worker see its neighbours' requests.
    HeaderName::from_static("service-worker-allowed"),
    // Would send clients elsewhere.
    HeaderName::from_static("alt-svc"),
    // Would report everybody's requests to someone.
    HeaderName::from_static("nel"),
    HeaderName::from_static("report-to"),
    HeaderName::from_static("reporting-endpoints"),
    HeaderName::from_static("public-key-pins"),
    HeaderName::from_static("public-key-pins-report-only"),
    HeaderName::from_static("expect-ct"),
    // Would have clients say more of themselves with every request.
    HeaderName::from_static("accept-ch"),
    HeaderName::from_static("critical-ch"),
    // Would be used to read answers that are not the sandbox's.
    HeaderName::from_static("use-as-dictionary"),
    // Would say whether somebody is logged in.
    HeaderName::from_static("set-login"),
];

/// Says what is wrong with how the response tells its length, if anything.
pub(crate) fn flaw(headers: &HeaderMap) -> Option<&'static str> {
    if !headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    if headers.contains_key(CONTENT_LENGTH) {
        return Some("it has a length and is chunked");
    }
    (!request::is_only_chunked(headers)).then_some("its transfer coding is unknown")
}

/// Rewrites what must not leave as it is.
pub(crate) fn rewrite(headers: &mut HeaderMap, prefix: Option<&str>, isolation: Isolation) {
    hop::strip(headers);
    cookie::confine(headers, prefix);
    let Some(prefix) = prefix else { return };
    for name in ORIGIN_WIDE {
        headers.remove(name);
    }
    let location = headers
        .get(LOCATION)
        .and_then(|value| below(prefix, value.as_bytes()));
    if let Some(location) = location {
        headers.insert(LOCATION, location);
    }
    if isolation == Isolation::Opaque {
        // Appended: policies add up, and the page's own stays in force.
        headers.append(CONTENT_SECURITY_POLICY, OPAQUE_ORIGIN);
    }
}

/// Puts an absolute path below the prefix. Other hosts and relative paths are right as they are.
fn below(prefix: &str, location: &[u8]) -> Option<HeaderValue> {
    let is_path = location.starts_with(b"/") && !location.starts_with(b"//");
    if !is_path || cookie::is_below(prefix, location) {
        return None;
    }
    HeaderValue::from_bytes(&[prefix.as_bytes(), location].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(name: &'static str, value: &'static str, prefix: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        rewrite(&mut headers, prefix, Isolation::Opaque);
        headers
    }

    #[test]
    fn absolute_paths_get_the_prefix_and_nothing_else_does() {
        for (from, to) in [
            ("/login?next=/", "/p/abc/80/login?next=/"),
            ("/", "/p/abc/80/"),
            ("/\\evil.com", "/p/abc/80/\\evil.com"),
            ("/p/abc/80/x", "/p/abc/80/x"),
            ("/p/abc/800", "/p/abc/80/p/abc/800"),
            ("next", "next"),
            ("//other.example/x", "//other.example/x"),
            ("https://other.example/x", "https://other.example/x"),
        ] {
            assert_eq!(
                rewritten("location", from, Some("/p/abc/80"))["location"],
                to
            );
            assert_eq!(rewritten("location", from, None)["location"], from);
        }
    }

    #[test]
    fn a_page_below_a_path_cannot_speak_for_the_origin() {
        for name in ORIGIN_WIDE {
            let mut headers = HeaderMap::new();
            headers.insert(name.clone(), HeaderValue::from_static("x"));
            let mut own = headers.clone();
            rewrite(&mut headers, Some("/p/abc/80"), Isolation::Shared);
            assert!(headers.is_empty(), "{name}");
            rewrite(&mut own, None, Isolation::Opaque);
            assert_eq!(own.len(), 1, "{name}");
        }
    }

    #[test]
    fn the_policy_adds_to_the_pages_own() {
        let headers = rewritten(
            "content-security-policy",
            "default-src 'self'",
            Some("/p/abc/80"),
        );
        let policies: Vec<_> = headers.get_all(CONTENT_SECURITY_POLICY).iter().collect();
        assert_eq!(policies.len(), 2);
        assert!(!policies[1].to_str().unwrap().contains("allow-same-origin"));
    }

    #[test]
    fn two_lengths_are_a_flaw() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("1"));
        assert_eq!(flaw(&headers), None);
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        assert!(flaw(&headers).is_some());
        headers.remove(CONTENT_LENGTH);
        assert_eq!(flaw(&headers), None);
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("gzip"));
        assert!(flaw(&headers).is_some());
    }
}
