//! Who is really at the other end, when a proxy the operator trusts says so.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use sandyard_config::Network;

use crate::app::App;
use crate::listen::Listener;

/// Believes `X-Forwarded-For` and `X-Forwarded-Proto` of trusted proxies, and of nobody else.
pub(crate) async fn believe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let proxies = &app.settings().trusted_proxies;
    if let Some(listener) = request.extensions().get::<Listener>().copied()
        && is_trusted(proxies, listener.peer.ip())
    {
        let client = client(request.headers(), proxies);
        let is_tls = request
            .headers()
            .get("x-forwarded-proto")
            .map(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"));
        request.extensions_mut().insert(Listener {
            peer: client.map_or(listener.peer, |ip| SocketAddr::new(ip, 0)),
            is_tls: is_tls.unwrap_or(listener.is_tls),
            ..listener
        });
    }
    next.run(request).await
}

/// The last address that no trusted proxy has: whatever stands before it the client may have made up.
fn client(headers: &HeaderMap, proxies: &[Network]) -> Option<IpAddr> {
    let named: Vec<IpAddr> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map_while(|part| part.trim().parse().ok())
        .collect();
    let last = named.last().copied();
    named
        .into_iter()
        .rev()
        .find(|ip| !is_trusted(proxies, *ip))
        .or(last)
}

fn is_trusted(proxies: &[Network], ip: IpAddr) -> bool {
    proxies.iter().any(|network| network.contains(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(forwarded: &str) -> Option<IpAddr> {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        client(&headers, &["10.0.0.0/8".parse().unwrap()])
    }

    #[test]
    fn the_last_untrusted_address_is_the_client() {
        let expected: IpAddr = "203.0.113.7".parse().unwrap();
        assert_eq!(client_of("203.0.113.7"), Some(expected));
        assert_eq!(client_of("1.2.3.4, 203.0.113.7, 10.1.2.3"), Some(expected));
        assert_eq!(client_of("nonsense"), None);
    }
}
