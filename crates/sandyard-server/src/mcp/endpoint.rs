//! The HTTP side: what comes in, and in which form the answer goes out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::conversation::{CONVERSATION, ResultOnly, conversation};
use super::handler::Handler;
use super::running::{CallName, Running};
use crate::app::App;
use crate::extract::small_body;
use crate::middleware::request_id::random_uuid;
use crate::prelude::*;

/// Longest message; a file to be written may be in it.
const MAX_MESSAGE: usize = 8 << 20;
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// What has to be known of a message before it is handled.
#[derive(Default, Deserialize)]
struct Glance {
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Cancelled,
}

#[derive(Default, Deserialize)]
struct Cancelled {
    #[serde(default, rename = "requestId")]
    id: Option<RequestId>,
}

/// Takes one message and answers it.
pub(super) async fn serve(call: Call, request: Request) -> ApiResult<Response> {
    if *request.method() == Method::DELETE {
        // The end of a conversation. There is nothing to forget.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (mut parts, body) = request.into_parts();
    let message = small_body(body, MAX_MESSAGE, parts.extensions.get().cloned()).await?;
    let glance: Glance = serde_json::from_slice(&message).unwrap_or_default();
    if glance.method == "notifications/cancelled"
        && let (Some(conversation), Some(id)) = (conversation(&parts.headers), glance.params.id)
    {
        call.app.state::<Running>().cancel(&CallName {
            caller: call.caller.name,
            conversation,
            id,
        });
    }
    let accepts = Accepts::of(&parts.headers);
    parts.headers.insert(header::ACCEPT, BOTH);
    if accepts == Accepts::Json {
        parts.extensions.insert(ResultOnly);
    }
    // A stream keeps long calls alive on their way; what is quick needs none.
    let is_json = match accepts {
        Accepts::Json => true,
        Accepts::Events => false,
        Accepts::Both => glance.method != "tools/call",
    };
    let service = service(call.app, is_json);
    let response = service.handle(Request::from_parts(parts, Body::from(message)));
    let mut response = response.await.map(Body::new);
    if glance.method == "initialize"
        && response.status().is_success()
        && let Ok(label) = HeaderValue::try_from(random_uuid())
    {
        response.headers_mut().insert(CONVERSATION, label);
    }
    Ok(response)
}

fn service(app: App, is_json: bool) -> StreamableHttpService<Handler, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(is_json)
        .with_max_request_body_bytes(MAX_MESSAGE)
        // The gate has checked both, and knows the names of this server.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let make = move || Ok(Handler::new(app.clone()));
    StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config)
}

/// What a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    Json,
    Events,
    Both,
}

impl Accepts {
    /// A client that says nothing, as one line of curl does, takes JSON.
    fn of(headers: &HeaderMap) -> Self {
        let text: String = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(|value| value.to_ascii_lowercase() + ",")
            .collect();
        match (
            text.contains("application/json"),
            text.contains("text/event-stream"),
        ) {
            (true, true) => Self::Both,
            (false, true) => Self::Events,
            _ => Self::Json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_they_take() {
        for (accept, wanted) in [
            ("application/json, text/event-stream", Accepts::Both),
            ("Text/Event-Stream", Accepts::Events),
            ("application/json", Accepts::Json),
            ("*/*", Accepts::Json),
        ] {
            let pair = (header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(
                Accepts::of(&HeaderMap::from_iter([pair])),
                wanted,
                "{accept}"
            );
        }
        assert_eq!(Accepts::of(&HeaderMap::new()), Accepts::Json);
    }
}
