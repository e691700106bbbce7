//! Client of the external service for search and for image and video generation.
//!
//! `setup-mcp` sets its URL and the user's key (`tool_server_url`, `credential`). Its protocol:
//!
//! ```text
//! POST {tool_server_url}/{path}
//! Authorization: Bearer {user_api_key}
//! {"session_id": "…", …parameters}
//!
//! 200 {…answer}                          any other status {"error": "reason"} or {"detail": "…"}
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
use crate::reply::{Problem, Result, truncate};
use crate::tool_state::{Credential, ToolState};

/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Maximum length of the service's error text.
const MAX_REASON: usize = 1000;

/// The configured service.
#[derive(Debug)]
pub(crate) struct ToolService {
    url: Url,
    credential: Option<Credential>,
}

impl ToolService {
    /// The configured service, or a problem that says how to configure it.
    pub(crate) fn of(tool_state: &ToolState) -> Result<Self> {
        let config = tool_state.runtime_config();
        let Some(url) = config.tool_server_url else {
            return Err(Problem::new(
                "no tool_server_url is configured for this sandbox, so search and the generation of images and videos are not available; the \
                 owner of the sandbox can set it with setup-mcp (`tool_server_url`, and `credential` for its key). Use web_visit or \
                 the browser tools for a page whose URL is known",
            ));
        };
        let url = Url::parse(&url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                Problem::new(
                    "the configured tool_server_url is not an http or https URL; set it again with setup-mcp",
                )
            })?;
        Ok(Self {
            url,
            credential: config.credential,
        })
    }

    /// Sends a request, whose body is an object, and waits for the answer within a time limit.
    pub(crate) async fn post(&self, path: &str, body: &Value, limit: Duration) -> Result<Value> {
        match tokio::time::timeout(limit, self.send(path, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(Problem::new(format!(
                "the service at tool_server_url did not answer within {} seconds; try again later",
                limit.as_secs()
            ))),
        }
    }

    async fn send(&self, path: &str, body: &Value) -> Result<Value> {
        let mut request = http::client(&self.url).await?.post(self.endpoint(path)?);
        let mut object = body.as_object().cloned().unwrap_or_else(Map::new);
        if let Some(credential) = &self.credential {
            request = request.bearer_auth(&credential.user_api_key);
            object.insert("session_id".into(), credential.session_id.clone().into());
        }
        let sent = request.json(&object).send().await;
        let mut response = sent.map_err(|error| {
            Problem::new(format!(
                "the service at tool_server_url cannot be reached: {}",
                http::problem(&error)
            ))
        })?;
        let status = response.status();
        let (bytes, is_cut) = http::body_up_to(&mut response, MAX_ANSWER).await?;
        if !status.is_success() {
            return Err(Problem::new(format!(
                "the service at tool_server_url answered with status {status}: {}",
                reason(&bytes)
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

    fn endpoint(&self, path: &str) -> Result<Url> {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.path_segments_mut()
            .map_err(|()| Problem::new("the configured tool_server_url cannot have a path"))?
            .pop_if_empty()
            .extend(path.split('/'));
        Ok(url)
    }
}

/// The service's error text, truncated.
fn reason(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let text_field = parsed.as_ref().and_then(|value| {
        let found = ["error", "detail", "message"]
            .iter()
            .find_map(|key| value.get(key))?;
        Some(
            found
                .as_str()
                .map_or_else(|| found.to_string(), str::to_owned),
        )
    });
    truncate(
        text_field.unwrap_or_else(|| text.trim().to_owned()),
        MAX_REASON,
    )
}
