//! One request to a port and its response back.
//!
//! ```text
//! client ── request ──▶ prepare ──▶ dial ──▶ HTTP/1.1 over the stream ──▶ port
//!        ◀─ response ── rewrite ◀── headers within limits ◀──────────────
//!        ◀───────────── body, frame by frame, with the guard ────────────
//!        ◀══ 101 ══════ splice: bytes both ways, with the guard ════════▶
//! ```
//!
//! A connection carries one exchange and is dropped with it: there is nothing to desynchronise, and a client that goes
//! away takes its request along.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::body::{self, AbortOnDrop, BoxError, Inbound, Outbound, PreviewBody};
use crate::dial::Dial;
use crate::error::ForwardError;
use crate::request::RequestOptions;
use crate::target::{ForwardLimits, Target};
use crate::wait::{GaveUp, Progress};
use crate::{gate, request, response, splice};

/// Least buffer hyper takes.
const MIN_BUFFER: usize = 8 << 10;

/// Carries a request to a port of a sandbox and gives its response.
///
/// Both bodies stream; neither is held. An upgrade the port agrees to is carried by a task of its own for as long as
/// both sides want. Dropping the future or the response's body drops the connection.
pub async fn forward<B>(
    request: Request<B>,
    mut target: Target,
    dial: impl Dial,
) -> Result<Response<PreviewBody>, ForwardError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = request.into_parts();
    announce_body(&mut parts, !body.is_end_stream());
    let options = request::prepare(&mut parts, &target)?;
    let progress = Arc::new(Progress::new());
    let mut request = outgoing(
        Request::from_parts(parts, body),
        &options,
        &target,
        &progress,
    );

    let dialled = timeout(target.limits.connect, dial.dial(target.port))
        .await
        .map_err(|_| ForwardError::Timeout("connecting to the port"))?
        .map_err(|error| ForwardError::of_dial(target.port, error))?;
    request.headers_mut().extend(dialled.headers);
    let (mut sender, connection) = client(&target.limits)
        .handshake(TokioIo::new(dialled.stream))
        .await
        .map_err(|error| ForwardError::of_hyper(target.port, error))?;
    let connection = AbortOnDrop(tokio::spawn(async move {
        // Errors reach the caller through the response or its body.
        let _ = connection.with_upgrades().await;
    }));

    // The dial had its own time.
    progress.moved();
    let answer = progress
        .wait(target.limits.headers, sender.send_request(request))
        .await;
    let response = match answer {
        Ok(Ok(response)) => response,
        Ok(Err(_)) if progress.is_client_gone() => return Err(ForwardError::ClientGone),
        Ok(Err(error)) => return Err(ForwardError::of_hyper(target.port, error)),
        Err(GaveUp::Quiet) => return Err(ForwardError::Timeout("waiting for the response")),
        Err(GaveUp::Flooded) => {
            let detail = "it is announced without end";
            return Err(ForwardError::bad_response(target.port, detail));
        }
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return switch(response, options, target, connection);
    }
    if let Some(detail) = response::flaw(response.headers()) {
        return Err(ForwardError::bad_response(target.port, detail));
    }
    let guard = target.guard.take();
    let (mut head, inner) = rewrite_headers(response, &target).into_parts();
    // hyper acts on extensions, so none that came from a sandbox may pass.
    head.extensions.clear();
    head.version = Version::HTTP_11;
    let body = Inbound {
        inner,
        _connection: connection,
        _guard: guard,
    };
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Announces a body without a length as HTTP/1.1 wants it: in HTTP/2 its frames alone tell that there is one.
fn announce_body(parts: &mut Parts, has_body: bool) {
    if parts.version == Version::HTTP_2 && has_body && !parts.headers.contains_key(CONTENT_LENGTH) {
        let chunked = HeaderValue::from_static("chunked");
        parts.headers.insert(TRANSFER_ENCODING, chunked);
    }
}

fn client(limits: &ForwardLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // As browsers and proxies write them: some programs know no other case.
        .title_case_headers(true)
        .max_headers(limits.max_headers)
        .max_header_size(limits.max_header_len)
        .max_buf_size(limits.max_header_len.max(MIN_BUFFER));
    builder
}

/// Puts the body behind its gate and has interim responses counted.
fn outgoing<B>(
    request: Request<B>,
    options: &RequestOptions,
    target: &Target,
    progress: &Arc<Progress>,
) -> Request<Outbound<B>> {
    let (opener, gate) = if options.expects_continue {
        let (opener, gate) = gate::gate(target.limits.expect);
        (Some(opener), Some(gate))
    } else {
        (None, None)
    };
    let mut request = request.map(|body| Outbound::new(body, gate, Arc::clone(progress)));
    let progress = Arc::clone(progress);
    hyper::ext::on_informational(&mut request, move |interim| {
        progress.interim();
        if let (StatusCode::CONTINUE, Some(opener)) = (interim.status(), &opener) {
            opener.open();
        }
    });
    request
}

fn rewrite_headers<B>(mut response: Response<B>, target: &Target) -> Response<B> {
    let prefix = target.prefix.as_deref();
    response::rewrite(response.headers_mut(), prefix, target.isolation);
    response
}

/// Answers `101` and has the two streams joined once the client has it.
fn switch(
    mut response: Response<Incoming>,
    options: RequestOptions,
    mut target: Target,
    connection: AbortOnDrop,
) -> Result<Response<PreviewBody>, ForwardError> {
    let protocol = response.headers().get(UPGRADE).cloned();
    let (Some(client), Some(protocol)) = (options.upgrade, protocol) else {
        let detail = "it switches protocols without a request to do so";
        return Err(ForwardError::bad_response(target.port, detail));
    };
    let port = hyper::upgrade::on(&mut response);
    let guard = target.guard.take();
    let (port_number, half_closed) = (target.port, target.limits.half_closed);
    tokio::spawn(async move {
        // Held until the end: the connection hands its stream over, the guard counts as activity.
        let _held = (connection, guard);
        match tokio::try_join!(client, port) {
            Ok((client, port)) => {
                splice::splice(TokioIo::new(client), TokioIo::new(port), half_closed).await;
            }
            Err(error) => {
                tracing::debug!(port = port_number, %error, "Upgrade of a preview came to nothing");
            }
        }
    });
    let (mut head, _) = rewrite_headers(response, &target).into_parts();
    head.extensions.clear();
    head.version = Version::HTTP_11;
    head.headers.insert(UPGRADE, protocol);
    head.headers
        .insert(CONNECTION, HeaderValue::from_static("upgrade"));
    Ok(Response::from_parts(head, body::empty()))
}
