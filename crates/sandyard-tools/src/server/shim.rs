//! A plain `{"tool": …, "args": {…}}` for clients of one line.

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

use super::MAX_REQUEST;
use super::mcp::Handler;
use crate::call::Call;

/// Where such requests are taken.
const PATHS: &[&str] = &["/", "/mcp", "/mcp/"];

/// What tells a plain request from one of MCP.
#[derive(Deserialize)]
struct Peek {
    tool: Option<IgnoredAny>,
    jsonrpc: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Plain {
    tool: String,
    #[serde(default, alias = "arguments")]
    args: Option<JsonObject>,
}

/// Answers such a request; lets all others pass.
pub(super) async fn answer(
    State(handler): State<Handler>,
    request: Request,
    next: Next,
) -> Response {
    if !may_be_plain(&request) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        let problem =
            format!("the request could not be read, or has more than {MAX_REQUEST} bytes");
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, &problem, "send less at once");
    };
    if !is_plain(&body) {
        return next.run(Request::from_parts(parts, Body::from(body))).await;
    }
    match serde_json::from_slice::<Plain>(&body) {
        Ok(plain) => call(handler, plain).await,
        Err(error) => refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            &format!("the request is wrong: {error}"),
            r#"send {"tool": "NAME", "args": {…}}"#,
        ),
    }
}

fn may_be_plain(request: &Request) -> bool {
    request.method() == Method::POST && PATHS.contains(&request.uri().path())
}

fn is_plain(body: &Bytes) -> bool {
    serde_json::from_slice::<Peek>(body)
        .is_ok_and(|peek| peek.tool.is_some() && peek.jsonrpc.is_none())
}

async fn call(handler: Handler, plain: Plain) -> Response {
    let Plain { tool, args } = plain;
    let call = Call::quiet();
    // Dropped with this request when the caller hangs up.
    let _guard = call.cancelled.clone().drop_guard();
    let name = tool.clone();
    // On its own, so that the work can tidy up then.
    let work =
        tokio::spawn(async move { handler.call(&name, args.unwrap_or_default(), call).await });
    match work.await {
        Ok(Some(reply)) => Json(shown(&tool, reply.into_result())).into_response(),
        Ok(None) => refuse(
            StatusCode::NOT_FOUND,
            &format!("there is no tool {tool}"),
            "ask for tools/list over MCP at /mcp to see which there are",
        ),
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("the tool {tool} broke down"),
            "try other arguments",
        ),
    }
}

fn shown(tool: &str, result: CallToolResult) -> Value {
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
