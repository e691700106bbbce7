//! Connections that change from HTTP to another protocol, such as WebSockets.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, HeaderValue, Request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// The program's end, if it requests another protocol that may be forwarded without inspection.
///
/// Another version of HTTP could reach other hosts with other headers, without inspection. Such an upgrade is removed from the
/// request, as a server may ignore it.
pub(super) fn of_request(request: &mut Request<Incoming>) -> Option<OnUpgrade> {
    if !request.headers().contains_key(UPGRADE) {
        return None;
    }
    let program = hyper::upgrade::on(&mut *request);
    let mut upgrades = request.headers().get_all(UPGRADE).iter();
    if upgrades.any(is_http) {
        let headers = request.headers_mut();
        headers.remove(UPGRADE);
        headers.remove(HeaderName::from_static("http2-settings"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        return None;
    }
    Some(program)
}

fn is_http(upgrade: &HeaderValue) -> bool {
    let upgrade = upgrade.as_bytes().to_ascii_lowercase();
    let mut protocols = upgrade.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    protocols.any(|protocol| {
        let starts: [&[u8]; 4] = [b"h2", b"h3", b"http", b"tls"];
        starts.iter().any(|start| protocol.starts_with(start))
    })
}

/// Copies bytes between both ends until both have ended.
pub(super) async fn splice(program: OnUpgrade, other: OnUpgrade) {
    let (Ok(program), Ok(other)) = tokio::join!(program, other) else {
        return;
    };
    let (mut program, mut other) = (TokioIo::new(program), TokioIo::new(other));
    if let Err(error) = tokio::io::copy_bidirectional(&mut program, &mut other).await {
        // Both ends see the error themselves.
        tracing::debug!(%error, "An upgraded connection broke");
    }
}
