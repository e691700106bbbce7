//! The request as the sandbox sees it.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    REFERER, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Uri, Version};
use hyper::upgrade::OnUpgrade;

use crate::error::ForwardError;
use crate::names::{
    CREDENTIAL_HEADERS, E2B_SANDBOX_PREFIX, FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PREFIX,
    FORWARDED_PROTO,
};
use crate::target::{AuthorizationHeader, HostHeader, Target};
use crate::{cookie, hop, query};

/// What a request asks for besides its response.
pub(crate) struct RequestOptions {
    /// The client's side of an upgrade.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// The body waits for `100 Continue`.
    pub(crate) expects_continue: bool,
}

/// Turns a client's request into the one the sandbox gets.
pub(crate) fn prepare(parts: &mut Parts, target: &Target) -> Result<RequestOptions, ForwardError> {
    if parts.method == Method::CONNECT {
        return Err(ForwardError::BadRequest("CONNECT has no place here"));
    }
    let framing = framing(&parts.headers)?;
    let uri = inner_uri(&parts.uri, target.prefix.as_deref())?;
    let protocol = hop::upgrade(&parts.headers);
    let on_upgrade = parts.extensions.remove::<OnUpgrade>();
    let upgrade = protocol.zip(on_upgrade);
    let wants_trailers = hop::has_token(&parts.headers, &TE, "trailers");
    let expects_continue = hop::has_token(&parts.headers, &EXPECT, "100-continue");

    parts.uri = uri;
    parts.version = Version::HTTP_11;
    // Extensions are notes of our own layers; hyper would act on some of them.
    parts.extensions.clear();
    let headers = &mut parts.headers;
    hop::strip(headers);
    strip_credentials(headers);
    if target.authorization == AuthorizationHeader::Withhold {
        headers.remove(AUTHORIZATION);
    }
    set_forwarded(headers, target)?;
    framing.apply(headers);

    let (connection, upgrade) = match upgrade {
        Some((protocol, on_upgrade)) => {
            headers.insert(UPGRADE, protocol);
            ("upgrade", Some(on_upgrade))
        }
        None if wants_trailers => {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            ("close, te", None)
        }
        None => ("close", None),
    };
    headers.insert(CONNECTION, HeaderValue::from_static(connection));
    Ok(RequestOptions {
        upgrade,
        expects_continue,
    })
}

/// Removes every credential for this server.
pub(crate) fn strip_credentials(headers: &mut HeaderMap) {
    // Gateways of some languages read `_` as `-`, so both spellings go.
    let doomed: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_ours(&name.as_str().replace('_', "-")))
        .cloned()
        .collect();
    for name in doomed {
        headers.remove(name);
    }
    cookie::strip_own(headers);
    let referer = headers.get(REFERER).and_then(|value| value.to_str().ok());
    if let Some(clean) = referer.map(query::scrub) {
        match HeaderValue::try_from(clean) {
            Ok(value) => headers.insert(REFERER, value),
            Err(_) => headers.remove(REFERER),
        };
    }
}

fn is_ours(name: &str) -> bool {
    name.starts_with("x-forwarded-")
        || name.starts_with(E2B_SANDBOX_PREFIX)
        // `Proxy` becomes the variable HTTP_PROXY in CGI programs (CVE-2016-5385 and others).
        || matches!(name, "forwarded" | "x-real-ip" | "proxy")
        || CREDENTIAL_HEADERS.iter().any(|known| known == name)
}

fn set_forwarded(headers: &mut HeaderMap, target: &Target) -> Result<(), ForwardError> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| ForwardError::BadRequest("its host is malformed"))
    };
    if let Some(client) = target.client {
        headers.insert(FORWARDED_FOR, value(&client.to_canonical().to_string())?);
    }
    let scheme = HeaderValue::from_static(target.scheme.as_str());
    headers.insert(FORWARDED_PROTO, scheme);
    headers.insert(FORWARDED_HOST, value(&target.host)?);
    if let Some(prefix) = &target.prefix {
        headers.insert(FORWARDED_PREFIX, value(prefix)?);
    }
    let host = match &target.host_header {
        HostHeader::Keep => value(&target.host)?,
        HostHeader::Fixed(name) => value(name)?,
        HostHeader::Localhost => value(&format!("localhost:{}", target.port))?,
    };
    headers.insert(HOST, host);
    Ok(())
}

/// How the length of the body is told.
enum Framing {
    Chunked,
    Length(HeaderValue),
    Unsaid,
}

impl Framing {
    fn apply(self, headers: &mut HeaderMap) {
        headers.remove(CONTENT_LENGTH);
        match self {
            Self::Chunked => headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
            Self::Length(length) => headers.insert(CONTENT_LENGTH, length),
            Self::Unsaid => None,
        };
    }
}

/// Reads how the length is told, and takes no two ways: that is how requests are smuggled (RFC 9112 11.2).
fn framing(headers: &HeaderMap) -> Result<Framing, ForwardError> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(ForwardError::BadRequest("it has two lengths"));
    }
    let coded = headers.contains_key(TRANSFER_ENCODING);
    match length {
        Some(_) if coded => Err(ForwardError::BadRequest("it has a length and is chunked")),
        Some(length) if !length.as_bytes().iter().all(u8::is_ascii_digit) => {
            Err(ForwardError::BadRequest("its length is not a number"))
        }
        Some(length) => Ok(Framing::Length(length.clone())),
        None if !coded => Ok(Framing::Unsaid),
        None if is_only_chunked(headers) => Ok(Framing::Chunked),
        None => Err(ForwardError::BadRequest("its transfer coding is unknown")),
    }
}

/// Tells whether the one transfer coding is `chunked`, which hyper takes off.
pub(crate) fn is_only_chunked(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let first = codings.next();
    codings.next().is_none()
        && first.is_some_and(|coding| {
            coding
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(b"chunked")
        })
}

/// Gives the URI inside: path and query, without the prefix and without our token.
fn inner_uri(uri: &Uri, prefix: Option<&str>) -> Result<Uri, ForwardError> {
    let outside = ForwardError::BadRequest("its path is not below the preview");
    let path = match prefix {
        None => uri.path(),
        Some(prefix) => match uri.path().strip_prefix(prefix) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            _ => return Err(outside),
        },
    };
    let path_and_query = match uri.query().and_then(query::without_token) {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    PathAndQuery::try_from(path_and_query)
        .map(Uri::from)
        .map_err(|_| ForwardError::BadRequest("its path is malformed"))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
