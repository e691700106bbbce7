//! Headers that end at each hop (RFC 9110 7.6.1).

use http::header::{
    CONNECTION, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};

/// Those that are never passed on, whether `Connection` names them or not.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes off what ends here, and what `Connection` says ends here.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Gives the members of a list header, over all its lines.
pub(crate) fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

/// Tells whether a list header has a member, in any case.
pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, expected: &str) -> bool {
    tokens(headers, name).any(|token| token.eq_ignore_ascii_case(expected))
}

/// Gives the protocol to switch to, when that is really asked for.
///
/// Never `h2c`: requests inside it would bypass every check.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<http::HeaderValue> {
    if !has_token(headers, &CONNECTION, "upgrade") {
        return None;
    }
    let mut values = headers.get_all(UPGRADE).iter();
    let (first, rest) = (values.next()?, values.next());
    if rest.is_some() || has_token(headers, &UPGRADE, "h2c") {
        return None;
    }
    Some(first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    http::HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn what_connection_names_goes_with_it() {
        let mut map = headers(&[
            ("connection", "close, X-Private , ,b@d"),
            ("x-private", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "secret"),
            ("x-kept", "1"),
        ]);
        map.append(CONNECTION, http::HeaderValue::from_static("x-other"));
        map.append("x-other", http::HeaderValue::from_static("1"));
        strip(&mut map);
        assert_eq!(map, headers(&[("x-kept", "1")]));
    }

    #[test]
    fn an_upgrade_needs_both_headers_and_a_harmless_protocol() {
        let both = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ];
        assert!(upgrade(&headers(&both)).is_some());
        assert!(upgrade(&headers(&both[..1])).is_none());
        assert!(upgrade(&headers(&both[1..])).is_none());
        assert!(upgrade(&headers(&[both[0], ("upgrade", "websocket, H2C")])).is_none());
    }
}
