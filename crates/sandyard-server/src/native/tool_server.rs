//! Asks a sandbox's tool server for its tools: MCP over streamable HTTP, through the agent.
//!
//! What answers is a program of the sandbox's and not trusted: its answer is bounded and only names are taken from it.

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sandyard_agent_client::AgentClient;
use sandyard_core::ErrorKind;
use serde_json::{Value, json};

use crate::error::ApiError;

/// Largest answer.
const MAX_ANSWER: usize = 4 << 20;
/// Most tools and longest name that are told.
const MAX_TOOLS: usize = 1000;
const MAX_NAME: usize = 128;

/// The names of its tools.
pub(crate) async fn list_tools(agent: &AgentClient, port: u16) -> Result<Vec<String>, ApiError> {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "sandyard", "version": env!("CARGO_PKG_VERSION")},
    }});
    let (_, session) = call(agent, port, &hello, None).await?;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    // Servers without sessions may refuse it; the list says whether they work.
    let _ = call(agent, port, &ready, session.as_deref()).await;
    let question = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    let (answer, _) = call(agent, port, &question, session.as_deref()).await?;
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.ok_or_else(|| nonsense("its list of tools is no list"))?;
    Ok(tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .take(MAX_TOOLS)
        .map(|name| {
            name.chars()
                .filter(|c| !c.is_control())
                .take(MAX_NAME)
                .collect()
        })
        .collect())
}

/// One message, its answer and the session the server put it in.
async fn call(
    agent: &AgentClient,
    port: u16,
    message: &Value,
    session: Option<&str>,
) -> Result<(Value, Option<String>), ApiError> {
    let stream = agent.dial(port).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|_| nonsense("it does not speak HTTP"))?;
    let connection = tokio::spawn(connection);
    let answer = exchange(&mut sender, message, session).await;
    connection.abort();
    answer
}

async fn exchange(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    message: &Value,
    session: Option<&str>,
) -> Result<(Value, Option<String>), ApiError> {
    let mut request = Request::post("/mcp")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request
        .body(Full::from(message.to_string()))
        .map_err(|_| nonsense("its session id is none"))?;
    let response = sender
        .send_request(request)
        .await
        .map_err(|_| nonsense("it hung up"))?;
    let status = response.status();
    if !status.is_success() {
        return Err(nonsense(&format!("it answered {status}")));
    }
    let session = response
        .headers()
        .get("mcp-session-id")
        .and_then(|value| value.to_str().ok().map(str::to_owned));
    if status == StatusCode::ACCEPTED {
        return Ok((Value::Null, session));
    }
    let is_stream = crate::extract::media_type(response.headers()) == "text/event-stream";
    let mut body = Limited::new(response.into_body(), MAX_ANSWER);
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| nonsense("its answer is cut off or too long"))?;
        text.extend_from_slice(&frame.into_data().unwrap_or_default());
        // A stream may stay open after the answer.
        if is_stream && let Some(answer) = event_data(&text) {
            return Ok((answer, session));
        }
    }
    let answer = if is_stream {
        None
    } else {
        serde_json::from_slice(&text).ok()
    };
    Ok((
        answer.ok_or_else(|| nonsense("its answer is no JSON"))?,
        session,
    ))
}

/// The first whole event of a stream that is an answer.
fn event_data(text: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n");
    let (whole, _) = text.rsplit_once("\n\n")?;
    whole
        .split("\n\n")
        .filter_map(|event| {
            let data: Vec<_> = event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(str::trim_start)
                .collect();
            serde_json::from_str::<Value>(&data.join("\n")).ok()
        })
        .find(|message| message.get("result").is_some() || message.get("error").is_some())
}

fn nonsense(why: &str) -> ApiError {
    ApiError::new(
        ErrorKind::Conflict,
        format!("what listens on the tool server's port is none: {why}"),
    )
    .hint("use a template with a tool server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_in_a_stream_of_events() {
        let stream = b"event: message\r\ndata: {\"method\":\"x\"}\r\n\r\nid: 1\ndata: {\"result\":\ndata: 7}\n\nrest";
        assert_eq!(event_data(stream).unwrap()["result"], 7);
        assert!(event_data(b"data: {\"result\":1}\n").is_none());
    }
}
