//! The client of a sandbox's tool server: MCP over streamable HTTP, and the routes beside it, through the agent.
//!
//! The tool server is a program in the sandbox and not trusted: its answers are bounded and checked.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sandyard_agent_client::AgentClient;
use sandyard_core::ErrorKind;
use sandyard_service::{Live, MemoryHold};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::answer::{
    Answer, MAX_ANSWER, MAX_RESULT, MAX_TEXT, not_a_tool_server, plain, read, result_of, tools_of,
};
use super::progress::ProgressSender;
use crate::error::{ApiError, ApiResult};

/// Largest number of tools, longest name of a tool in characters, and largest number of pages of a list.
const MAX_TOOLS: usize = 1000;
const MAX_NAME: usize = 128;
const MAX_PAGES: usize = 20;
/// The requested version of the protocol.
const VERSION: &str = "2025-06-18";
/// Path of the protocol, and the header that names a session.
const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
/// Time limit of each message that ends a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A session with a tool server. Dropping it ends the session and cancels the call in progress.
pub(crate) struct ToolServer<'a> {
    live: &'a Live,
    session: Session,
    next_id: u64,
    /// The call in progress, or one that was never answered.
    pending_call: Option<u64>,
    /// Bytes that further pages of a list may have.
    list_budget: usize,
    /// Accounts for the memory of answers.
    memory: MemoryHold,
}

/// The port of a tool server, and the headers that its session requires in every request.
#[derive(Clone)]
struct Session {
    port: u16,
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl<'a> ToolServer<'a> {
    /// A client without a session.
    pub(crate) fn new(live: &'a Live, port: u16) -> Self {
        Self {
            live,
            session: Session {
                port,
                id: None,
                version: None,
            },
            next_id: 1,
            pending_call: None,
            list_budget: MAX_ANSWER,
            memory: live.hold_memory(),
        }
    }

    /// Begins a session.
    pub(crate) async fn open(live: &'a Live, port: u16) -> ApiResult<Self> {
        let mut server = Self::new(live, port);
        let hello = json!({
            "protocolVersion": VERSION, "capabilities": {},
            "clientInfo": {"name": "sandyard", "version": env!("CARGO_PKG_VERSION")},
        });
        let result = server.request("initialize", hello, None).await?;
        let version = result["protocolVersion"].as_str().unwrap_or(VERSION);
        server.session.version = HeaderValue::from_str(version).ok();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        // Servers without sessions may refuse it; the next request shows whether they work.
        let _ = server.exchange(PATH, &ready).await;
        Ok(server)
    }

    /// The tools, as the server describes them.
    pub(crate) async fn list(&mut self) -> ApiResult<Vec<Value>> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let page = self.request("tools/list", params, None).await?;
            let (tools, next) = tools_of(page)?;
            all.extend(tools);
            cursor = next;
            if cursor.is_none() || all.len() >= MAX_TOOLS {
                break;
            }
        }
        all.truncate(MAX_TOOLS);
        Ok(all)
    }

    /// The names of the tools.
    pub(crate) async fn names(&mut self) -> ApiResult<Vec<String>> {
        let tools = self.list().await?;
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        Ok(names.map(|name| plain(name, MAX_NAME)).collect())
    }

    /// Calls a tool. With `progress`, the tool is asked to report its progress.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: Option<&ProgressSender>,
    ) -> ApiResult<Value> {
        let mut params = json!({"name": tool, "arguments": arguments});
        if progress.is_some() {
            params["_meta"] = json!({"progressToken": self.next_id});
        }
        self.pending_call = Some(self.next_id);
        let answer = self.request("tools/call", params, progress).await?;
        self.pending_call = None;
        Ok(answer)
    }

    /// Sends settings to a route beside the protocol. None: the server has no such route.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> ApiResult<Option<Value>> {
        let answer = self.exchange(path, body).await?;
        match answer.status {
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Ok(None),
            status if status.is_success() => Ok(Some(answer.message.unwrap_or_default())),
            status => {
                let message = answer.message.unwrap_or_default();
                let texts = ["detail", "error", "message"].map(|name| message[name].as_str());
                let reason = texts
                    .into_iter()
                    .flatten()
                    .next()
                    .unwrap_or("it does not say why");
                let detail = format!(
                    "the tool server refused `{path}` with {}: {}",
                    status.as_u16(),
                    plain(reason, MAX_TEXT)
                );
                Err(ApiError::new(ErrorKind::Conflict, detail).hint("check what you sent it"))
            }
        }
    }

    /// Sends a request of the protocol and returns its result.
    async fn request(
        &mut self,
        method: &str,
        params: Value,
        progress: Option<&ProgressSender>,
    ) -> ApiResult<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let agent = &self.live.agent;
        let (response, _connection) = self.session.send(agent, PATH, Some(&message)).await?;
        // Stored at once, since the body may never arrive.
        if let Some(session) = response.headers().get(SESSION) {
            self.session.id = Some(session.clone());
        }
        let max_bytes = match method {
            "tools/call" => MAX_RESULT,
            "tools/list" => self.list_budget,
            _ => MAX_ANSWER,
        };
        // Earlier answers are no longer in memory.
        self.memory.shrink_to(0);
        let answer = read(response, max_bytes, progress, &self.memory).await?;
        if method == "tools/list" {
            self.list_budget = self.list_budget.saturating_sub(answer.size);
        }
        if !answer.status.is_success() {
            return Err(not_a_tool_server(&format!("it answered {}", answer.status)));
        }
        let message = answer
            .message
            .ok_or_else(|| not_a_tool_server("its answer is not JSON"))?;
        result_of(method, message)
    }

    /// Sends one message and reads the answer.
    async fn exchange(&self, path: &str, message: &Value) -> ApiResult<Answer> {
        let message = Some(message);
        let (response, _connection) = self.session.send(&self.live.agent, path, message).await?;
        read(response, MAX_ANSWER, None, &self.live.hold_memory()).await
    }
}

impl Drop for ToolServer<'_> {
    fn drop(&mut self) {
        if self.session.id.is_none() {
            return;
        }
        let (session, agent) = (self.session.clone(), self.live.agent.clone());
        let cancelled = self.pending_call.map(|id| {
            let params =
                json!({"requestId": id, "reason": "the client no longer waits for the answer"});
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        });
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // A server may refuse both messages, and one that has ended has no sessions.
                if let Some(notice) = cancelled {
                    let _ = timeout(CLOSE_TIMEOUT, session.send(&agent, PATH, Some(&notice))).await;
                }
                let _ = timeout(CLOSE_TIMEOUT, session.send(&agent, PATH, None)).await;
            });
        }
    }
}

impl Session {
    /// Sends a message on a connection of its own; without a message, ends the session. Dropping the second part of the result closes
    /// the connection, so that the tool server learns that the client no longer waits.
    async fn send(
        &self,
        agent: &AgentClient,
        path: &str,
        message: Option<&Value>,
    ) -> ApiResult<(Response<Incoming>, AbortOnDrop)> {
        let port = agent.dial(self.port).await?;
        let request = self.prepare(path, message, &port.headers)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(port.stream))
            .await
            .map_err(|_| not_a_tool_server("it does not speak HTTP"))?;
        let connection = AbortOnDrop(tokio::spawn(async move {
            // The reader of the answer gets the error.
            let _ = connection.await;
        }));
        let response = sender
            .send_request(request)
            .await
            .map_err(|_| not_a_tool_server("it hung up"))?;
        Ok((response, connection))
    }

    fn prepare(
        &self,
        path: &str,
        message: Option<&Value>,
        dial_headers: &HeaderMap,
    ) -> ApiResult<Request<Full<Bytes>>> {
        let method = message.map_or(Method::DELETE, |_| Method::POST);
        let body = message.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .body(Full::from(body))
            .map_err(|_| not_a_tool_server("it cannot be asked"))?;
        let headers = request.headers_mut();
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = &self.version {
            headers.insert("mcp-protocol-version", version.clone());
        }
        headers.extend(dial_headers.clone());
        Ok(request)
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
