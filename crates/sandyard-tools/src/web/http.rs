//! HTTP client of the web tools.

use reqwest::Url;
use reqwest::redirect::Policy;

use crate::http_client;
use crate::reply::{Problem, Result, truncate};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 10;

/// A client for a URL, created for each call.
pub(super) async fn client(url: &Url) -> Result<reqwest::Client> {
    // An http URL may redirect to https, so load the certificates always.
    let roots = http_client::roots().await;
    http_client::builder(url, roots)
        .redirect(Policy::limited(MAX_REDIRECTS))
        .retry(reqwest::retry::never())
        .user_agent(concat!(
            "Mozilla/5.0 (compatible; sandyard-tools/",
            env!("CARGO_PKG_VERSION"),
            ")"
        ))
        .build()
        .map_err(Problem::new)
}

/// The body of a response up to a limit, and whether there was more.
pub(super) async fn body_up_to(
    response: &mut reqwest::Response,
    limit: usize,
) -> Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| problem(&error))? {
        let remaining_bytes = limit - body.len();
        if chunk.len() > remaining_bytes {
            body.extend_from_slice(&chunk[..remaining_bytes]);
            return Ok((body, true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, false))
}

/// The problem for an error: its causes, without the URL, which may contain secrets.
pub(super) fn problem(error: &reqwest::Error) -> Problem {
    let mut causes = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        causes.push(next.to_string());
        cause = next.source();
    }
    if causes.is_empty() {
        let what = if error.is_timeout() {
            "it took too long"
        } else if error.is_redirect() {
            "too many redirects"
        } else {
            "the connection failed"
        };
        causes.push(what.into());
    }
    Problem::new(truncate(causes.join(": "), 2000))
}
