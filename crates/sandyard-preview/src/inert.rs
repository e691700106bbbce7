//! Answers of a sandbox on a host that is not its own, made harmless.
//!
//! Some of E2B's clients name a sandbox by headers or by a signature, on a host they share with the API. To a browser such an
//! answer is the API's own: what it runs, stores or announces would be in the API's name. No page is meant to be shown this
//! way, so nothing of it is let run.

use http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY,
    CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LINK, REFRESH, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};

use crate::response::ORIGIN_WIDE;

/// Gives a page an origin of its own, and nothing to run or to load.
const NOTHING: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");

/// Headers that take effect whatever the body is.
const ACTING: [HeaderName; 5] = [
    SET_COOKIE,
    REFRESH,
    LINK,
    HeaderName::from_static("speculation-rules"),
    CONTENT_SECURITY_POLICY_REPORT_ONLY,
];

/// Kinds of content that browsers show or save and never run, beside images, sounds and films.
const HARMLESS: [&str; 12] = [
    "application/connect+json",
    "application/gzip",
    "application/json",
    "application/octet-stream",
    "application/pdf",
    "application/proto",
    "application/x-tar",
    "application/zip",
    "text/csv",
    "text/event-stream",
    "text/markdown",
    "text/plain",
];

/// Takes away what would speak or act for the origin, and forbids the body to be more than bytes.
pub fn make_inert(headers: &mut HeaderMap) {
    for name in ORIGIN_WIDE.into_iter().chain(ACTING) {
        headers.remove(name);
    }
    headers.insert(CONTENT_SECURITY_POLICY, NOTHING);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Has browsers save the body, under the name that was given for it, and not show it.
pub fn make_download(headers: &mut HeaderMap) {
    let disposition = attachment(headers);
    headers.insert(CONTENT_DISPOSITION, disposition);
    if headers.contains_key(CONTENT_TYPE) && !has_harmless_type(headers) {
        let bytes = HeaderValue::from_static("application/octet-stream");
        headers.insert(CONTENT_TYPE, bytes);
    }
}

/// What was said of the name, as that of something to be saved.
fn attachment(headers: &HeaderMap) -> HeaderValue {
    let plain = HeaderValue::from_static("attachment");
    let Some(given) = only(headers, &CONTENT_DISPOSITION) else {
        return plain;
    };
    match given.split_once(';') {
        Some((_, name)) => HeaderValue::try_from(format!("attachment;{name}")).unwrap_or(plain),
        None => plain,
    }
}

/// Says whether there is one type, and one that browsers do not run. They read several in one header too: a comma is one too
/// many.
fn has_harmless_type(headers: &HeaderMap) -> bool {
    let Some(given) = only(headers, &CONTENT_TYPE).filter(|given| !given.contains(',')) else {
        return false;
    };
    let kind = given.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_media = ["image/", "audio/", "video/"]
        .iter()
        .any(|start| kind.starts_with(start));
    HARMLESS.contains(&kind.as_str()) || (is_media && !kind.contains("xml"))
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn nothing_acts_or_speaks_for_the_origin() {
        let mut input = headers(&[
            ("set-cookie", "a=b"),
            ("set-cookie", "c=d; Domain=x"),
            ("refresh", "0;url=/"),
            ("link", "</x>; rel=preload"),
            ("service-worker-allowed", "/"),
            ("clear-site-data", "*"),
            ("content-security-policy", "default-src *"),
            ("content-security-policy", "script-src *"),
            ("x-content-type-options", "no"),
            ("etag", "1"),
        ]);
        make_inert(&mut input);
        let expected = headers(&[
            ("content-security-policy", "sandbox; default-src 'none'"),
            ("x-content-type-options", "nosniff"),
            ("etag", "1"),
        ]);
        assert_eq!(input, expected);
    }

    #[test]
    fn a_download_is_of_a_kind_that_does_not_run() {
        for kind in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            " text/html",
            "image/svg+xml",
            "application/xhtml+xml",
            "text/xml",
            "application/xml",
            "application/javascript",
            "text/javascript",
            "text/css",
            "multipart/x-mixed-replace",
            "text/plain, text/html",
            "text/plain;a=\",text/html\"",
            "message/rfc822",
            "application/wasm",
            "",
            "*/*",
        ] {
            let mut given = headers(&[("content-type", kind)]);
            make_download(&mut given);
            assert_eq!(given[CONTENT_TYPE], "application/octet-stream", "{kind}");
        }
        for kind in [
            "application/octet-stream",
            "text/plain; charset=utf-8",
            "image/png",
            "Application/JSON",
        ] {
            let mut given = headers(&[("content-type", kind)]);
            make_download(&mut given);
            assert_eq!(given[CONTENT_TYPE], kind);
        }
        let mut two = headers(&[
            ("content-type", "text/plain"),
            ("content-type", "text/html"),
        ]);
        make_download(&mut two);
        assert_eq!(two.get_all(CONTENT_TYPE).iter().count(), 1);
        assert_eq!(two[CONTENT_TYPE], "application/octet-stream");
    }

    #[test]
    fn a_download_keeps_its_name() {
        for (given, wanted) in [
            (vec![], "attachment"),
            (vec!["inline"], "attachment"),
            (
                vec!["inline; filename*=utf-8''a"],
                "attachment; filename*=utf-8''a",
            ),
            (vec!["attachment; filename=a"], "attachment; filename=a"),
            (vec!["inline", "attachment"], "attachment"),
        ] {
            let pairs: Vec<_> = given
                .iter()
                .map(|it| ("content-disposition", *it))
                .collect();
            let mut given = headers(&pairs);
            make_download(&mut given);
            let all: Vec<_> = given.get_all(CONTENT_DISPOSITION).iter().collect();
            assert_eq!(all, [wanted]);
        }
    }
}
