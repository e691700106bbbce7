//! Requests over TLS, which is ended here and started again.

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

/// How long a program is told why nobody can be reached.
const REFUSAL_TIME: Duration = Duration::from_secs(30);

/// Ends the program's TLS, starts one to the other side, and carries requests between them, changed as the grant says at that
/// moment. `inside` starts with the program's hello.
pub(crate) async fn carry_tls<S>(
    tls: &Tls,
    inside: S,
    outside: Dialled,
    host: Host,
    grant: GrantSource,
) -> Result<(), HttpFailure>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let hello = Tls::hello(inside).await;
    let hello = hello.map_err(|error| {
        HttpFailure::Unreachable(format!(
            "no TLS with the program for `{}`: {error}",
            host.name
        ))
    })?;
    let offers = offers(hello.client_hello().alpn());
    let connected = match offers.as_deref() {
        // A program that offers other protocols only must learn that it cannot have them.
        Some([]) => Err(format!(
            "the program wants another protocol than HTTP from `{}`",
            host.name
        )),
        Some(offers) => tls.connect(outside.stream, &host.name, offers).await,
        None => {
            tls.connect(outside.stream, &host.name, &[Protocol::One])
                .await
        }
    };
    let outside = match connected {
        Ok(outside) => outside,
        Err(reason) => {
            let protocol = first_choice(offers.as_deref());
            let inside = tls
                .accept(hello, &host.name, offers.and(Some(protocol)))
                .await;
            if let Ok(inside) = inside {
                refuse(inside, protocol, reason.clone()).await;
            }
            return Err(HttpFailure::Unreachable(reason));
        }
    };
    let chosen = outside.get_ref().1.alpn_protocol();
    let protocol = chosen.and_then(Protocol::of).unwrap_or(Protocol::One);
    let inside = tls
        .accept(hello, &host.name, offers.and(Some(protocol)))
        .await;
    let inside = inside.map_err(HttpFailure::Unreachable)?;
    let terms = ConnectionTerms {
        host,
        is_tls: true,
        grant,
        whole_urls: None,
        other_names: None,
    };
    connection::carry(inside, outside, protocol, terms).await
}

/// Which of the protocols that a program offers are known here; none when it leaves it open.
fn offers<'a>(offered: Option<impl Iterator<Item = &'a [u8]>>) -> Option<Vec<Protocol>> {
    let offered: Vec<_> = offered?.collect();
    let known: Vec<_> = offered.iter().copied().filter_map(Protocol::of).collect();
    // The old one has no name that both sides of a TLS connection agree on; it is spoken without.
    let is_old = known.is_empty() && offered.contains(&&b"http/1.0"[..]);
    (!is_old).then_some(known)
}

/// What to speak with a program that is only to be told why not.
fn first_choice(offers: Option<&[Protocol]>) -> Protocol {
    match offers {
        Some(offers) if !offers.contains(&Protocol::One) && !offers.is_empty() => Protocol::Two,
        _ => Protocol::One,
    }
}

async fn refuse<S>(inside: S, protocol: Protocol, reason: String)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request: http::Request<_>| {
        let response = answer::line(request.version(), StatusCode::BAD_GATEWAY, &reason);
        async move { Ok::<_, Infallible>(response) }
    });
    let refused = connection::refuse(inside, protocol, service);
    let _ = timeout(REFUSAL_TIME, refused).await;
}
