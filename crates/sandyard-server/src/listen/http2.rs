//! HTTP/2: bounds, and requests in the form of HTTP/1.1.

use std::time::Duration;

use axum::http::header::{COOKIE, HOST};
use axum::http::{HeaderValue, Method, Request, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Http2Builder;

/// Maximum number of concurrent requests of a connection. Clients keep one stream for each command and watch that they follow.
const MAX_STREAMS: u32 = 256;

/// Maximum size of the head of a request, in bytes, as the protocol counts them.
const MAX_HEAD_BYTES: u32 = 64 << 10;

/// Maximum number of streams that a client has reset before the server began with them (CVE-2023-44487).
const MAX_RESET_STREAMS: usize = 32;

/// Maximum number of streams that the server resets because of errors of the client (CVE-2025-8671).
const MAX_ERRORS: usize = 256;

/// Bytes that a client may send ahead: of one request, and of all requests of a connection.
const WINDOWS: (u32, u32) = (512 << 10, 1 << 20);

/// Maximum size of the write buffer of a response, in bytes.
const BUFFER_BYTES: usize = 128 << 10;

/// How often to check that a client is still there, and how long to wait for its answer.
const PING: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(30));

/// Sets the bounds of a connection.
pub(super) fn configure(builder: &mut Http2Builder<'_, TokioExecutor>) {
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(MAX_ERRORS)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_send_buf_size(BUFFER_BYTES);
}

/// Puts a request into the form of HTTP/1.1: the authority in the header `Host`, which it replaces (RFC 9113 8.3.1), only path and query
/// in the URI, and one header `Cookie` (8.2.3).
pub(super) fn give_host<B>(request: &mut Request<B>) {
    if request.version() != Version::HTTP_2 {
        return;
    }
    let authority = request.uri().authority().map(|name| name.as_str());
    if let Some(host) = authority.and_then(|name| HeaderValue::from_str(name).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    if request.method() != Method::CONNECT
        && let Some(path) = request.uri().path_and_query()
    {
        *request.uri_mut() = Uri::from(path.clone());
    }
    let cookies: Vec<_> = request.headers().get_all(COOKIE).iter().collect();
    if cookies.len() > 1 {
        let joined = cookies.iter().map(|value| value.as_bytes());
        let joined = joined.collect::<Vec<_>>().join(&b"; "[..]);
        if let Ok(cookie) = HeaderValue::from_bytes(&joined) {
            request.headers_mut().insert(COOKIE, cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gets_the_form_of_http1() {
        let mut request = Request::builder()
            .version(Version::HTTP_2)
            .uri("https://3000-abc.sbx.test:1/a?b=c")
            .header("host", "other")
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .body(())
            .unwrap();
        give_host(&mut request);
        assert_eq!(request.uri(), "/a?b=c");
        assert_eq!(request.headers()["host"], "3000-abc.sbx.test:1");
        let cookies: Vec<_> = request.headers().get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2"]);
    }
}
