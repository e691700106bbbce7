//! Plain calls: `{"tool": …, "args": {…}}` in one request, without MCP.

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::model::{CallToolResult, JsonObject};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::MAX_REQUEST_BYTES;
use super::mcp::Handler;
use crate::call::Call;

/// Paths that accept plain calls.
const PATHS: &[&str] = &["/", "/mcp", "/mcp/"];

/// The fields that distinguish a plain call from an MCP message.
#[derive(Deserialize)]
struct RequestKind {
    tool: Option<IgnoredAny>,
    jsonrpc: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PlainCall {
    tool: String,
    #[serde(alias = "arguments")]
    args: Option<JsonObject>,
}

/// Answers plain calls and passes all other requests on.
pub(super) async fn answer(
    State(handler): State<Handler>,
    request: Request,
    next: Next,
) -> Response {
    if !may_be_plain(&request) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        let problem =
            format!("the request could not be read, or is larger than {MAX_REQUEST_BYTES} bytes");
        return refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &problem,
            "send a smaller request",
        );
    };
    if !is_plain(&body) {
        return next.run(Request::from_parts(parts, Body::from(body))).await;
    }
    match serde_json::from_slice::<PlainCall>(&body) {
        Ok(plain) => call(handler, plain).await,
        Err(error) => refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            &format!("invalid request: {error}"),
            r#"send {"tool": "NAME", "args": {…}}"#,
        ),
    }
}

fn may_be_plain(request: &Request) -> bool {
    request.method() == Method::POST && PATHS.contains(&request.uri().path())
}

fn is_plain(body: &Bytes) -> bool {
    serde_json::from_slice::<RequestKind>(body)
        .is_ok_and(|kind| kind.tool.is_some() && kind.jsonrpc.is_none())
}

async fn call(handler: Handler, plain: PlainCall) -> Response {
    let PlainCall { tool, args } = plain;
    let call = Call::quiet();
    // Cancels the call when the client disconnects and this request is dropped.
    let _guard = call.cancelled.clone().drop_guard();
    let name = tool.clone();
    // In its own task, so that the work can clean up then.
    let work =
        tokio::spawn(async move { handler.call(&name, args.unwrap_or_default(), call).await });
    match work.await {
        Ok(Some(reply)) => Json(response_body(&tool, reply.into_result())).into_response(),
        Ok(None) => refuse(
            StatusCode::NOT_FOUND,
            &format!("unknown tool {tool}"),
            "send tools/list over MCP to /mcp for a list of tools",
        ),
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("internal error in the tool {tool}"),
            "try other arguments",
        ),
    }
}

fn response_body(tool: &str, result: CallToolResult) -> Value {
    let texts = result
        .content
        .iter()
        .filter_map(|block| block.as_text().map(|text| text.text.as_str()));
    let text = texts.collect::<Vec<_>>().join("\n");
    let is_error = result.is_error.unwrap_or_default();
    json!({
        "success": !is_error,
        "tool": tool,
        "result": text,
        "content": result.content,
        "structured": result.structured_content,
        "is_error": is_error,
    })
}

fn refuse(status: StatusCode, error: &str, hint: &str) -> Response {
    let body = json!({"success": false, "error": error, "hint": hint});
    (status, Json(body)).into_response()
}
