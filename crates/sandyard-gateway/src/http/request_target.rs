//! The target of a request, in the form the remote side expects.

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, StatusCode, Uri, Version};

use super::answer::Refusal;
use super::exchange::ConnectionTerms;

/// Whether the request has the form for a proxy.
pub(super) fn is_absolute(head: &Parts) -> bool {
    head.version < Version::HTTP_2 && head.uri.authority().is_some()
}

/// Sets the target in the form that the remote side expects: the path alone for a server, the whole URL for a proxy and in
/// HTTP/2.
pub(super) fn set_target(terms: &ConnectionTerms, head: &mut Parts) -> Result<(), Refusal> {
    let ConnectionTerms { host, is_tls, .. } = terms;
    let is_two = head.version == Version::HTTP_2;
    // The address may be that of a proxy, with requests for other hosts; each was judged.
    if terms.other_names.is_some() && is_absolute(head) {
        return Ok(());
    }
    let invalid = || {
        Refusal::answer(
            StatusCode::BAD_REQUEST,
            "the request's URL is not valid".to_owned(),
        )
    };
    let authority = match (head.uri.authority(), head.headers.get(HOST)) {
        (Some(authority), _) => authority.clone(),
        (None, Some(name)) => Authority::try_from(name.as_bytes()).map_err(|_| invalid())?,
        (None, None) => Authority::try_from(host.authority(*is_tls)).map_err(|_| invalid())?,
    };
    if !is_two && !head.headers.contains_key(HOST) {
        let name = HeaderValue::from_str(authority.as_str()).map_err(|_| invalid())?;
        head.headers.insert(HOST, name);
    }
    for name in [
        PROXY_AUTHORIZATION,
        HeaderName::from_static("proxy-connection"),
    ] {
        head.headers.remove(name);
    }
    let mut uri = std::mem::take(&mut head.uri).into_parts();
    if let Some(proxy) = &terms.whole_urls
        && let Some(authorization) = &proxy.authorization
    {
        let mut value = HeaderValue::from_str(authorization).map_err(|_| invalid())?;
        value.set_sensitive(true);
        head.headers.insert(PROXY_AUTHORIZATION, value);
    }
    if is_two || terms.whole_urls.is_some() {
        let scheme = if *is_tls { Scheme::HTTPS } else { Scheme::HTTP };
        uri.scheme = Some(scheme);
        uri.authority = Some(authority);
    } else {
        uri.scheme = None;
        uri.authority = None;
    }
    // A whole URL cannot express the `*` of `OPTIONS *`: RFC 9112, 3.2.4.
    let path = uri.path_and_query.take();
    let path = path.filter(|path| path != "*" || uri.authority.is_none());
    uri.path_and_query = path.or_else(|| Some(PathAndQuery::from_static("/")));
    head.uri = Uri::from_parts(uri).map_err(|_| invalid())?;
    Ok(())
}
