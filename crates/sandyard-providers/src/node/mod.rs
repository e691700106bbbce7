//! Sandboxes of another server of the same installation.
//!
//! ```text
//!  this server                                         the other server
//!  NodeProvider ──POST /internal/provider/{verb}──▶ serve_verb ───▶ its own provider
//!  AgentClient ──▶ Tunnel ──POST /internal/agent/{id}, upgraded──▶ tunnel, splice ──▶ agent
//! ```
//!
//! The calling half is [`NodeProvider`]; the answering half is plain functions, which the server mounts on its internal routes
//! behind a check of the token. Every request carries `Authorization: Node <token>`.

mod backend;
mod config;
mod error;
mod serve;
mod tunnel;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url};
use sandyard_core::SandboxId;
use sandyard_provider::{Answer, Call, ProviderInfo, Result, Verb};
use serde::{Deserialize, Serialize};

use crate::{CallTimeouts, http_client};
pub use config::{NodeConfig, Token};
pub use serve::{INFO, refusal, serve_import, serve_verb};
pub use tunnel::{UPGRADE, splice, tunnel};

/// Path of the calls, before the verb.
pub const PROVIDER_PATH: &str = "/internal/provider";
/// Path of the agents, before the instance's id.
pub const AGENT_PATH: &str = "/internal/agent";

/// Maximum size of an answer in bytes: a long list of changes.
const MAX_ANSWER: usize = 64 << 20;
/// Maximum size of a request's body in bytes, archives excepted.
pub const MAX_REQUEST: usize = 4 << 20;
/// Added to the other server's own timeouts, so that its answer arrives.
const GRACE: Duration = Duration::from_secs(10);
/// How long the other server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The provider of another server.
#[derive(Debug)]
pub struct NodeProvider {
    node: Node,
    info: ProviderInfo,
}

/// How to reach it.
#[derive(Clone, Debug)]
struct Node {
    client: Client,
    url: Url,
    token: Token,
    timeouts: CallTimeouts,
}

impl NodeProvider {
    /// Asks the other server for the info of its provider.
    ///
    /// # Errors
    /// `Invalid` for an invalid address; `Unavailable` when no server answers there.
    pub async fn connect(config: NodeConfig) -> Result<Self> {
        let node = Node::new(config)?;
        let request = node.post(&[PROVIDER_PATH, INFO], node.timeouts.quick)?;
        let answer = node.send(INFO, request.body("{}")).await?;
        let info = serde_json::from_slice(&answer);
        let info = info.map_err(|error| error::unreadable(INFO, error))?;
        Ok(Self { node, info })
    }

    /// Uses `info` as its info, without asking the other server.
    ///
    /// # Errors
    /// `Invalid` for an invalid address.
    pub fn with_info(config: NodeConfig, info: ProviderInfo) -> Result<Self> {
        let node = Node::new(config)?;
        Ok(Self { node, info })
    }

    /// Begins the request of a call.
    fn request(&self, verb: Verb) -> Result<RequestBuilder> {
        let path = [PROVIDER_PATH, verb.as_str()];
        self.node.post(&path, self.node.timeouts.of(verb))
    }

    /// Makes a call whose arguments are JSON.
    async fn send(&self, call: &Call<'_>, json: Vec<u8>) -> Result<Answer> {
        let request = self.request(call.verb())?;
        let request = request.header(CONTENT_TYPE, "application/json").body(json);
        self.answer(call.verb(), request).await
    }

    async fn answer(&self, verb: Verb, request: RequestBuilder) -> Result<Answer> {
        let json = self.node.send(verb.as_str(), request).await?;
        Answer::from_json(verb, &json).map_err(|error| error::unreadable(verb.as_str(), error))
    }
}

/// The body of `set_network`: asks the other server to look up again what an instance may reach.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetNetworkRequest<'a> {
    /// The instance's id.
    pub id: Cow<'a, str>,
    /// The sandbox it is for.
    pub sandbox_id: SandboxId,
}

impl Node {
    fn new(config: NodeConfig) -> Result<Self> {
        let url = config.base()?;
        Ok(Self {
            client: config.client()?,
            url,
            token: config.token,
            timeouts: config.timeouts.plus(GRACE),
        })
    }

    /// Begins a request with a timeout.
    fn post(&self, path: &[&str], timeout: Duration) -> Result<RequestBuilder> {
        Ok(self.begin(path)?.timeout(timeout))
    }

    /// Begins a request without a timeout.
    fn begin(&self, path: &[&str]) -> Result<RequestBuilder> {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            // Our own path has several segments; what follows is one segment, whatever is in it.
            segments.extend(path[0].split('/').filter(|piece| !piece.is_empty()));
            segments.extend(&path[1..]);
        }
        let mut token = HeaderValue::try_from(format!("Node {}", self.token.make()))
            .map_err(|error| error::unreadable("authorization", error))?;
        token.set_sensitive(true);
        Ok(self.client.post(url).header(AUTHORIZATION, token))
    }

    /// Sends a request and returns the body of a successful answer.
    async fn send(&self, what: &str, request: RequestBuilder) -> Result<Bytes> {
        let response = request
            .send()
            .await
            .map_err(|failure| error::unsent(what, failure))?;
        let status = response.status();
        let body = collect(what, response).await?;
        match status {
            StatusCode::OK => Ok(body),
            status => Err(error::refused(what, status, &body)),
        }
    }
}

/// Reads an answer's body, up to [`MAX_ANSWER`].
async fn collect(what: &str, response: Response) -> Result<Bytes> {
    let unsent = |failure| error::unsent(what, failure);
    http_client::read_body(response, what, MAX_ANSWER, unsent).await
}
