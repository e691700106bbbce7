//! Connections that stop speaking HTTP, as WebSockets do.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, HeaderValue, Request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// The program's end, if it asks for another protocol that may be carried without being looked at.
///
/// One that is HTTP again could be for other hosts and with other headers, unseen: such a wish is left out of the request, as
/// every server may.
pub(super) fn of_request(request: &mut Request<Incoming>) -> Option<OnUpgrade> {
    if !request.headers().contains_key(UPGRADE) {
        return None;
    }
    let program = hyper::upgrade::on(&mut *request);
    let mut wishes = request.headers().get_all(UPGRADE).iter();
    if wishes.any(is_http_again) {
        let headers = request.headers_mut();
        headers.remove(UPGRADE);
        headers.remove(HeaderName::from_static("http2-settings"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        return None;
    }
    Some(program)
}

fn is_http_again(wish: &HeaderValue) -> bool {
    let wish = wish.as_bytes().to_ascii_lowercase();
    let mut protocols = wish.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    protocols.any(|protocol| {
        let starts: [&[u8]; 4] = [b"h2", b"h3", b"http", b"tls"];
        starts.iter().any(|start| protocol.starts_with(start))
    })
}

/// Carries bytes between both ends until both have ended.
pub(super) async fn splice(program: OnUpgrade, other: OnUpgrade) {
    let (Ok(program), Ok(other)) = tokio::join!(program, other) else {
        return;
    };
    let (mut program, mut other) = (TokioIo::new(program), TokioIo::new(other));
    if let Err(error) = tokio::io::copy_bidirectional(&mut program, &mut other).await {
        // How such a connection ends is between its two ends.
        tracing::debug!(%error, "An upgraded connection broke");
    }
}
