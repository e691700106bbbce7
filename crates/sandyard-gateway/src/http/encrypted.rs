//! Requests over TLS, which the gateway terminates.

use std::convert::Infallible;
use std::time::Duration;

use http::StatusCode;
use hyper::service::service_fn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::connection;
use super::exchange::{ConnectionTerms, GrantSource};
use super::host::Host;
use super::tls::Tls;
use super::versions::Protocol;
use super::{HttpFailure, answer};
use crate::dial::Dialled;

/// How long the gateway answers a program with the reason why the host is not reachable.
const REFUSAL_TIME: Duration = Duration::from_secs(30);

/// Terminates the program's TLS, opens TLS to the host, and forwards requests, changed as the current grant says. `program` starts with the program's hello.
pub(crate) async fn carry_tls<S>(
    tls: &Tls,
    program: S,
    remote: Dialled,
    host: Host,
    grant: GrantSource,
) -> Result<(), HttpFailure>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let hello = Tls::hello(program).await;
    let hello = hello.map_err(|error| {
        HttpFailure::Unreachable(format!(
            "the TLS handshake with the program for `{}` failed: {error}",
            host.name
        ))
    })?;
    let offers = offers(hello.client_hello().alpn());
    let connected = match offers.as_deref() {
        // A program that offers only other protocols gets an error.
        Some([]) => Err(format!(
            "the program requests another protocol than HTTP from `{}`, which the gateway cannot inspect",
            host.name
        )),
        Some(offers) => tls.connect(remote.stream, &host.name, offers).await,
        None => {
            tls.connect(remote.stream, &host.name, &[Protocol::Http1])
                .await
        }
    };
    let remote = match connected {
        Ok(remote) => remote,
        Err(reason) => {
            let protocol = first_choice(offers.as_deref());
            let program = tls
                .accept(hello, &host.name, offers.and(Some(protocol)))
                .await;
            if let Ok(program) = program {
                refuse(program, protocol, reason.clone()).await;
            }
            return Err(HttpFailure::Unreachable(reason));
        }
    };
    let chosen = remote.get_ref().1.alpn_protocol();
    let protocol = chosen.and_then(Protocol::of).unwrap_or(Protocol::Http1);
    let program = tls
        .accept(hello, &host.name, offers.and(Some(protocol)))
        .await;
    let program = program.map_err(HttpFailure::Unreachable)?;
    let terms = ConnectionTerms {
        host,
        is_tls: true,
        grant,
        whole_urls: None,
        other_names: None,
    };
    connection::carry(program, remote, protocol, terms).await
}

/// The supported protocols among those that a program offers; `None` when it offers none.
fn offers<'a>(offered: Option<impl Iterator<Item = &'a [u8]>>) -> Option<Vec<Protocol>> {
    let offered: Vec<_> = offered?.collect();
    let known: Vec<_> = offered.iter().copied().filter_map(Protocol::of).collect();
    // HTTP/1.0 has no common ALPN id, so it is used without ALPN.
    let is_old = known.is_empty() && offered.contains(&&b"http/1.0"[..]);
    (!is_old).then_some(known)
}

/// The protocol for a refusal.
fn first_choice(offers: Option<&[Protocol]>) -> Protocol {
    match offers {
        Some(offers) if !offers.contains(&Protocol::Http1) && !offers.is_empty() => Protocol::Http2,
        _ => Protocol::Http1,
    }
}

async fn refuse<S>(program: S, protocol: Protocol, reason: String)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request: http::Request<_>| {
        let response = answer::line(request.version(), StatusCode::BAD_GATEWAY, &reason);
        async move { Ok::<_, Infallible>(response) }
    });
    let refused = connection::refuse(program, protocol, service);
    let _ = timeout(REFUSAL_TIME, refused).await;
}
