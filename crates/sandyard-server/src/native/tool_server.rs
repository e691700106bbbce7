//! Talks to a sandbox's tool server: MCP over streamable HTTP, and the routes beside it, through the agent.
//!
//! What answers is a program of the sandbox's and not trusted: its answers are bounded, and nothing in them is believed.

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

use super::tool_answer::{Answer, MAX_ANSWER, MAX_RESULT, read, result_of, tools_of};
use super::tool_progress::Hearer;
use crate::error::ApiError;

/// Most tools and longest name that are told, and most pages of a list.
const MAX_TOOLS: usize = 1000;
const MAX_NAME: usize = 128;
const MAX_PAGES: usize = 20;
/// Longest word of its that is repeated.
pub(super) const MAX_WORD: usize = 500;
/// The version of the protocol that is asked for.
const VERSION: &str = "2025-06-18";
/// Where the protocol is spoken, and the header that names a session of it.
const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
/// Time to say farewell.
const FAREWELL: Duration = Duration::from_secs(10);

/// A conversation with a tool server. Its session ends with it, however that comes about: calls under way are cancelled.
pub(crate) struct ToolServer<'a> {
    live: &'a Live,
    way: Way,
    next_id: u64,
    /// The call that is under way, or whose answer never came.
    under_way: Option<u64>,
    /// Bytes that its lists may still have.
    budget: usize,
    /// Accounts for what it answers.
    memory: MemoryHold,
}

/// The way to a tool server, and what it wants to see again in every request.
#[derive(Clone)]
struct Way {
    port: u16,
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl<'a> ToolServer<'a> {
    /// One that has not been spoken to yet.
    pub(crate) fn new(live: &'a Live, port: u16) -> Self {
        Self {
            live,
            way: Way {
                port,
                session: None,
                version: None,
            },
            next_id: 1,
            under_way: None,
            budget: MAX_ANSWER,
            memory: live.hold_memory(),
        }
    }

    /// Begins a conversation.
    pub(crate) async fn open(live: &'a Live, port: u16) -> Result<Self, ApiError> {
        let mut server = Self::new(live, port);
        let hello = json!({
            "protocolVersion": VERSION, "capabilities": {},
            "clientInfo": {"name": "sandyard", "version": env!("CARGO_PKG_VERSION")},
        });
        let result = server.request("initialize", hello, None).await?;
        let version = result["protocolVersion"].as_str().unwrap_or(VERSION);
        server.way.version = HeaderValue::from_str(version).ok();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        // Servers without sessions may refuse it; what follows says whether they work.
        let _ = server.exchange(PATH, &ready).await;
        Ok(server)
    }

    /// Its tools, as it describes them.
    pub(crate) async fn list(&mut self) -> Result<Vec<Value>, ApiError> {
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

    /// The names of its tools.
    pub(crate) async fn names(&mut self) -> Result<Vec<String>, ApiError> {
        let tools = self.list().await?;
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        Ok(names.map(|name| plain(name, MAX_NAME)).collect())
    }

    /// Calls a tool. With a hearer it is asked to tell its progress.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Map<String, Value>,
        hearer: Option<&Hearer>,
    ) -> Result<Value, ApiError> {
        let mut params = json!({"name": tool, "arguments": arguments});
        if hearer.is_some() {
            params["_meta"] = json!({"progressToken": self.next_id});
        }
        self.under_way = Some(self.next_id);
        let answer = self.request("tools/call", params, hearer).await?;
        self.under_way = None;
        Ok(answer)
    }

    /// Sends settings to a route beside the protocol. None: it has no such route.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Option<Value>, ApiError> {
        let answer = self.exchange(path, body).await?;
        match answer.status {
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Ok(None),
            status if status.is_success() => Ok(Some(answer.message.unwrap_or_default())),
            status => {
                let message = answer.message.unwrap_or_default();
                let words = ["detail", "error", "message"].map(|name| message[name].as_str());
                let why = words
                    .into_iter()
                    .flatten()
                    .next()
                    .unwrap_or("it does not say why");
                let detail = format!(
                    "the tool server refused `{path}` with {}: {}",
                    status.as_u16(),
                    plain(why, MAX_WORD)
                );
                Err(ApiError::new(ErrorKind::Conflict, detail).hint("check what you sent it"))
            }
        }
    }

    /// One request of the protocol and its result.
    async fn request(
        &mut self,
        method: &str,
        params: Value,
        hearer: Option<&Hearer>,
    ) -> Result<Value, ApiError> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let agent = &self.live.agent;
        let (response, _connection) = self.way.send(agent, PATH, Some(&message)).await?;
        // Noted at once: the rest may never come.
        if let Some(session) = response.headers().get(SESSION) {
            self.way.session = Some(session.clone());
        }
        let most = match method {
            "tools/call" => MAX_RESULT,
            "tools/list" => self.budget,
            _ => MAX_ANSWER,
        };
        // The earlier answers are read and gone.
        self.memory.shrink_to(0);
        let answer = read(response, most, hearer, &self.memory).await?;
        if method == "tools/list" {
            self.budget = self.budget.saturating_sub(answer.size);
        }
        if !answer.status.is_success() {
            return Err(nonsense(&format!("it answered {}", answer.status)));
        }
        let message = answer
            .message
            .ok_or_else(|| nonsense("its answer is no JSON"))?;
        result_of(method, message)
    }

    /// One message of ours, and all that comes back.
    async fn exchange(&self, path: &str, message: &Value) -> Result<Answer, ApiError> {
        let message = Some(message);
        let (response, _connection) = self.way.send(&self.live.agent, path, message).await?;
        read(response, MAX_ANSWER, None, &self.live.hold_memory()).await
    }
}

impl Drop for ToolServer<'_> {
    fn drop(&mut self) {
        if self.way.session.is_none() {
            return;
        }
        let (way, agent) = (self.way.clone(), self.live.agent.clone());
        let cancelled = self.under_way.map(|id| {
            let params = json!({"requestId": id, "reason": "nobody waits for the answer any more"});
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        });
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Servers may refuse both, and one that is gone has no sessions.
                if let Some(notice) = cancelled {
                    let _ = timeout(FAREWELL, way.send(&agent, PATH, Some(&notice))).await;
                }
                let _ = timeout(FAREWELL, way.send(&agent, PATH, None)).await;
            });
        }
    }
}

impl Way {
    /// Sends a message on a connection of its own, or says farewell. The connection ends when the second half is dropped, by which
    /// the tool server learns that nobody waits.
    async fn send(
        &self,
        agent: &AgentClient,
        path: &str,
        message: Option<&Value>,
    ) -> Result<(Response<Incoming>, AbortOnDrop), ApiError> {
        let stream = agent.dial(self.port).await?;
        let request = self.prepare(path, message, stream.headers())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|_| nonsense("it does not speak HTTP"))?;
        let connection = AbortOnDrop(tokio::spawn(async move {
            // Whoever reads the answer is told.
            let _ = connection.await;
        }));
        let response = sender
            .send_request(request)
            .await
            .map_err(|_| nonsense("it hung up"))?;
        Ok((response, connection))
    }

    fn prepare(
        &self,
        path: &str,
        message: Option<&Value>,
        way: &HeaderMap,
    ) -> Result<Request<Full<Bytes>>, ApiError> {
        let method = message.map_or(Method::DELETE, |_| Method::POST);
        let body = message.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .body(Full::from(body))
            .map_err(|_| nonsense("it cannot be asked"))?;
        let headers = request.headers_mut();
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        if let Some(version) = &self.version {
            headers.insert("mcp-protocol-version", version.clone());
        }
        headers.extend(way.clone());
        Ok(request)
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A short text without control characters.
pub(crate) fn plain(text: &str, most: usize) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(most)
        .collect()
}

pub(super) fn nonsense(why: &str) -> ApiError {
    ApiError::new(
        ErrorKind::Conflict,
        format!("what listens on the tool server's port is none: {why}"),
    )
    .hint("use a template with a tool server")
}
