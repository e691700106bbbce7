//! The server outside that searches and makes pictures for us, where one is configured.
//!
//! Which one it is and the user's key for it come through `setup-mcp` (`tool_server_url`, `credential`). All of it is small:
//!
//! ```text
//! POST {tool_server_url}/{path}
//! Authorization: Bearer {user_api_key}
//! {"session_id": "…", …what is asked for}
//!
//! 200 {…answer}                          anything else {"error": "why, in words"} or {"detail": "…"}
//!
//! web-search     {"query": "…", "max_results": 10}   → {"results": [{"title", "url", "content"}]}
//! image-search   {"query": "…", "max_results": 10, "aspect_ratio"?, "image_type"?, "min_width"?, "min_height"?,
//!                 "is_product"?}
//!                                                     → {"results": [{"title", "image_url", "width"?, "height"?}]}
//! image-generation, video-generation                  see the media tools
//! ```

use std::time::Duration;

use reqwest::Url;
use serde_json::{Map, Value};

use super::http;
use crate::reply::{Problem, cut};
use crate::workshop::{Credential, Workshop};

/// Largest answer.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Most words of theirs in a problem of ours.
const MAX_WORDS: usize = 1000;

/// The configured server.
#[derive(Debug)]
pub(crate) struct Outside {
    url: Url,
    credential: Option<Credential>,
}

impl Outside {
    /// The one that was told to the workshop; else words on how to tell it.
    pub(crate) fn of(workshop: &Workshop) -> Result<Self, Problem> {
        let told = workshop.told();
        let Some(url) = told.tool_server_url else {
            return Err(Problem::new(
                "no tool_server_url is configured for this sandbox, so there is no search and nothing that makes images or \
                 videos; whoever owns the sandbox sets one with setup-mcp (`tool_server_url`, and `credential` for its \
                 key). Use web_visit or the browser tools for a page whose address is known",
            ));
        };
        let url = Url::parse(&url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                Problem::new(
                    "the configured tool_server_url is not an http or https address; set it again with setup-mcp",
                )
            })?;
        Ok(Self {
            url,
            credential: told.credential,
        })
    }

    /// Asks for something, an object, and waits this long at most for all of the answer.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Value, Problem> {
        match tokio::time::timeout(limit, self.ask(path, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(Problem::new(format!(
                "the service at tool_server_url did not answer within {} seconds; try again later",
                limit.as_secs()
            ))),
        }
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value, Problem> {
        let mut request = http::client(&self.url).await?.post(self.address(path)?);
        let mut object = body.as_object().cloned().unwrap_or_else(Map::new);
        if let Some(credential) = &self.credential {
            request = request.bearer_auth(&credential.user_api_key);
            object.insert("session_id".into(), credential.session_id.clone().into());
        }
        let sent = request.json(&object).send().await;
        let mut response = sent.map_err(|error| {
            Problem::new(format!(
                "the service at tool_server_url cannot be reached: {}",
                http::words(&error)
            ))
        })?;
        let status = response.status();
        let (bytes, is_cut) = http::body_up_to(&mut response, MAX_ANSWER).await?;
        if !status.is_success() {
            return Err(Problem::new(format!(
                "the service at tool_server_url refused with {status}: {}",
                why(&bytes)
            )));
        }
        if is_cut {
            return Err(Problem::new(format!(
                "the answer of the service at tool_server_url is larger than {MAX_ANSWER} bytes"
            )));
        }
        serde_json::from_slice(&bytes)
            .map_err(|_| Problem::new("the answer of the service at tool_server_url is not JSON"))
    }

    fn address(&self, path: &str) -> Result<Url, Problem> {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.path_segments_mut()
            .map_err(|()| Problem::new("the configured tool_server_url can have no paths"))?
            .pop_if_empty()
            .extend(path.split('/'));
        Ok(url)
    }
}

/// Their reason, in their words, bounded.
fn why(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let told = parsed.as_ref().and_then(|value| {
        let found = ["error", "detail", "message"]
            .iter()
            .find_map(|key| value.get(key))?;
        Some(
            found
                .as_str()
                .map_or_else(|| found.to_string(), str::to_owned),
        )
    });
    cut(told.unwrap_or_else(|| text.trim().to_owned()), MAX_WORDS)
}
