//! Who may use a listener that asks for no credentials: this host's own programs, and no web page.
//!
//! A page in this host's browser can send requests to loopback too, and with a name of its own that resolves to 127.0.0.1
//! (DNS rebinding) even read the answers. So the `Host` must be a name of this host, and whatever a browser marks as
//! coming from elsewhere is refused.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use sandyard_core::ErrorKind;

use crate::error::{ApiError, ApiResult};

/// Refuses a request that needs credentials even on an open listener.
pub(crate) fn check(request: &Request, domain: &str) -> ApiResult<()> {
    let headers = request.headers();
    if ["x-forwarded-for", "forwarded", "x-real-ip"]
        .iter()
        .any(|name| headers.contains_key(*name))
    {
        return Err(ApiError::new(
            ErrorKind::Unauthenticated,
            "credentials are missing: the request came through a proxy",
        )
        .hint("send `Authorization: Bearer <token>` or `X-API-Key: <key>`"));
    }
    let Some(host) = host_of(request) else {
        return Err(refused(
            "`Host` must be there once, and be a name or address",
        ));
    };
    if !is_own_host(host.host(), domain) {
        return Err(refused(&format!(
            "`Host: {}` is not a name of this host, and this listener is open only for programs on it",
            host.as_str().chars().take(100).collect::<String>()
        )));
    }
    check_browser(headers, host.as_str())
}

/// The host a request names, in its address or its header.
///
/// Exactly one: of two, others might read the one that we do not. And nothing that is not a host and a port: what follows
/// the host would be taken for a part of its name.
fn host_of(request: &Request) -> Option<Authority> {
    let mut headers = request.headers().get_all(header::HOST).iter();
    let named = match headers.next() {
        Some(value) => Some(value.to_str().ok()?.parse::<Authority>().ok()?),
        None => None,
    };
    if headers.next().is_some() {
        return None;
    }
    let host = match (request.uri().authority(), named) {
        (Some(authority), Some(named)) if *authority != named => return None,
        (Some(authority), _) => authority.clone(),
        (None, named) => named?,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let has_good_port = host.as_str() == host.host() || host.port_u16().is_some();
    (host.as_str().bytes().all(is_plain) && has_good_port).then_some(host)
}

fn check_browser(headers: &HeaderMap, host: &str) -> ApiResult<()> {
    if headers.contains_key(header::ORIGIN) {
        let origin = text(headers, "origin").unwrap_or("null");
        let is_same = origin
            .split_once("://")
            .is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host));
        if !is_same {
            return Err(refused(
                "`Origin` is another one: web pages need credentials",
            ));
        }
    }
    match text(headers, "sec-fetch-site") {
        Some("cross-site" | "same-site") => Err(refused(
            "`Sec-Fetch-Site` says that another web page asks: web pages need credentials",
        )),
        _ => Ok(()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Says whether a name leads to this host: an address of its own, `localhost`, the domain, or what is below them.
pub(crate) fn is_own_host(host: &str, domain: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let literal = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    if let Ok(address) = literal.parse::<IpAddr>() {
        return address.is_loopback();
    }
    let is_below = |name: &str| {
        !name.is_empty()
            && (host == name
                || host
                    .strip_suffix(name)
                    .is_some_and(|rest| rest.ends_with('.')))
    };
    is_below("localhost") || is_below(&domain.to_ascii_lowercase())
}

fn refused(reason: &str) -> ApiError {
    ApiError::new(ErrorKind::Forbidden, reason)
        .hint("use the address 127.0.0.1 or the name localhost, or send a token or key")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut builder = Request::builder().uri("/sandboxes");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(Body::empty()).unwrap()
    }

    #[test]
    fn names_of_this_host_are_let_in() {
        for host in [
            "localhost",
            "localhost:8100",
            "127.0.0.1:8100",
            "127.9.9.9",
            "[::1]:8100",
            "3000-abc.localhost:8100",
            "yard.example",
            "api.yard.example",
            "LOCALHOST.",
        ] {
            assert!(
                check(&request(&[("host", host)]), "yard.example").is_ok(),
                "{host}"
            );
        }
    }

    #[test]
    fn rebound_names_are_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "10.0.0.1",
            "",
            "[::2]",
            "evil.example/.localhost",
            "x?.localhost",
            "x#.localhost",
            "evil.example@localhost",
            "evil.example:80.localhost",
            "localhost:x",
            "localhost:99999",
            "a b.localhost",
        ] {
            assert!(check(&request(&[("host", host)]), "").is_err(), "{host}");
        }
        assert!(check(&request(&[]), "").is_err());
    }

    #[test]
    fn there_is_one_host_and_no_more() {
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert!(check(&request(&twice), "").is_err());
        let other = [("host", "localhost"), ("host", "evil.example")];
        assert!(check(&request(&other), "").is_err());
        for (uri, host, is_good) in [
            ("http://localhost/x", None, true),
            ("http://localhost/x", Some("LOCALHOST"), true),
            ("http://localhost/x", Some("evil.example"), false),
            ("http://evil.example/x", Some("localhost"), false),
        ] {
            let mut request = request(&[]);
            *request.uri_mut() = uri.parse().unwrap();
            if let Some(host) = host {
                let host = host.parse().unwrap();
                request.headers_mut().insert(header::HOST, host);
            }
            assert_eq!(check(&request, "").is_ok(), is_good, "{uri} {host:?}");
        }
    }

    #[test]
    fn web_pages_of_others_are_refused() {
        let host = ("host", "localhost:8100");
        for header in [
            ("origin", "null"),
            ("origin", "http://evil.example"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("x-forwarded-for", "1.2.3.4"),
        ] {
            assert!(check(&request(&[host, header]), "").is_err(), "{header:?}");
        }
        for header in [
            ("origin", "http://localhost:8100"),
            ("sec-fetch-site", "same-origin"),
        ] {
            assert!(check(&request(&[host, header]), "").is_ok(), "{header:?}");
        }
    }
}
