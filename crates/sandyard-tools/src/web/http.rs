//! One HTTP client for everything this program itself fetches.

use reqwest::Url;
use reqwest::redirect::Policy;

use crate::outgoing;
use crate::reply::{Problem, cut};

/// Longest way through redirects.
const MAX_REDIRECTS: usize = 10;

/// A client for an address, made for each call.
pub(super) async fn client(url: &Url) -> Result<reqwest::Client, Problem> {
    // A plain address may redirect to one that needs them, too.
    let roots = outgoing::roots().await;
    outgoing::builder(url, roots)
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

/// The body of an answer up to a limit, and whether there was more.
pub(super) async fn body_up_to(
    response: &mut reqwest::Response,
    limit: usize,
) -> Result<(Vec<u8>, bool), Problem> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| words(&error))? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body, true));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, false))
}

/// What went wrong, with its causes but without the address: it may hold what is not to be told.
pub(super) fn words(error: &reqwest::Error) -> Problem {
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
            "it redirects too often"
        } else {
            "the connection failed"
        };
        causes.push(what.into());
    }
    Problem::new(cut(causes.join(": "), 2000))
}
