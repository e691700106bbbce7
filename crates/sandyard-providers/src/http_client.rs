//! HTTP clients of the providers that are reached over a network.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{DATE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};
use rustls::ClientConfig;
use sandyard_core::Clock;
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

use crate::date::parse_http_date_ms;

/// How long an unused connection stays open, and how often a silent one is probed.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Starts a client that does not follow redirects, so that no other server receives its credentials.
pub(crate) fn client_builder(tls: ClientConfig, connect_timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(connect_timeout)
        .pool_idle_timeout(KEEP_ALIVE)
        .tcp_keepalive(KEEP_ALIVE)
}

/// Reads the body of an answer to `what`, up to a bound. `unsent` is the error of a broken connection.
pub(crate) async fn read_body(
    mut response: Response,
    what: &str,
    max_bytes: usize,
    unsent: impl Fn(reqwest::Error) -> ProviderError,
) -> Result<Bytes> {
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(&unsent)? {
        if body.len() + piece.len() > max_bytes {
            let message = format!("the answer to `{what}` has more than {max_bytes} bytes");
            return Err(ProviderError::new(ProviderErrorKind::Failed, message));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// The server's time, or that of this host if the answer has no date.
pub(crate) fn server_time_ms(headers: &HeaderMap) -> i64 {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let time = date.and_then(parse_http_date_ms);
    time.unwrap_or_else(|| Clock::System.now_ms())
}
