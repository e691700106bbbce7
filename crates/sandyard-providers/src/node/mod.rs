//! Sandboxes of another server of the same installation.
//!
//! ```text
//!  this server                                         the other server
//!  NodeProvider ──POST /internal/provider/{verb}──▶ serve_verb ───▶ its own provider
//!  AgentClient ──▶ Tunnel ──POST /internal/agent/{id}, upgraded──▶ tunnel, splice ──▶ agent
//! ```
//!
//! The asking half is [`NodeProvider`]; the answering half is plain functions, which the server puts on its internal routes
//! after it has checked the token. Every request carries `Authorization: Node <token>`.

mod backend;
mod config;
mod convert;
mod error;
mod serve;
mod tunnel;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url};
use sandyard_provider::{ProviderError, ProviderErrorKind, ProviderInfo, Result, Verb};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Times;
pub use config::{NodeConfig, Token};
pub use convert::SetNetworkRequest;
pub use serve::{INFO, refusal, serve_import, serve_verb};
pub use tunnel::{UPGRADE, splice, tunnel};

/// Where the calls are, before the verb.
pub const PROVIDER_PATH: &str = "/internal/provider";
/// Where the agents are, before the instance.
pub const AGENT_PATH: &str = "/internal/agent";

/// Most bytes of an answer: a long list of changes.
const MAX_ANSWER: usize = 64 << 20;
/// Most bytes of a request's body, an archive's left out; whoever serves them may refuse more.
pub const MAX_REQUEST: usize = 4 << 20;
/// Given to the other server beyond its own time, for saying that it is over.
const GRACE: Duration = Duration::from_secs(10);
/// How long the other server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The provider of another server.
#[derive(Debug)]
pub struct NodeProvider {
    node: Node,
    info: ProviderInfo,
}

/// How to ask it.
#[derive(Clone, Debug)]
struct Node {
    client: Client,
    url: Url,
    token: Token,
    times: Times,
}

impl NodeProvider {
    /// Asks the other server who it is.
    ///
    /// # Errors
    /// `Invalid` for an address that is none; `Unavailable` when nobody answers there.
    pub async fn connect(config: NodeConfig) -> Result<Self> {
        let node = Node::new(config)?;
        let asked = node.post(&[PROVIDER_PATH, INFO], node.times.quick)?;
        let answer = node.ask(INFO, asked.body("{}")).await?;
        let info = read(INFO, &answer)?;
        Ok(Self { node, info })
    }

    /// Takes another's word for who it is; nothing is asked.
    ///
    /// # Errors
    /// `Invalid` for an address that is none.
    pub fn with_info(config: NodeConfig, info: ProviderInfo) -> Result<Self> {
        let node = Node::new(config)?;
        Ok(Self { node, info })
    }

    async fn call<T: DeserializeOwned>(&self, verb: Verb, request: &impl Serialize) -> Result<T> {
        let json = serde_json::to_vec(request).map_err(|error| error::odd(verb.as_str(), error))?;
        let path = [PROVIDER_PATH, verb.as_str()];
        let asked = self.node.post(&path, self.node.times.of(verb))?;
        let asked = asked.header(CONTENT_TYPE, "application/json").body(json);
        read(verb.as_str(), &self.node.ask(verb.as_str(), asked).await?)
    }
}

impl Node {
    fn new(config: NodeConfig) -> Result<Self> {
        let url = config.base()?;
        Ok(Self {
            client: config.client()?,
            url,
            token: config.token,
            times: config.times.plus(GRACE),
        })
    }

    /// Begins a request that must be answered within `most`.
    fn post(&self, path: &[&str], most: Duration) -> Result<RequestBuilder> {
        Ok(self.begin(path)?.timeout(most))
    }

    /// Begins a request without a bound in time.
    fn begin(&self, path: &[&str]) -> Result<RequestBuilder> {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            // A path of ours goes piece by piece; what comes after it is one piece, whatever is in it.
            segments.extend(path[0].split('/').filter(|piece| !piece.is_empty()));
            segments.extend(&path[1..]);
        }
        let mut token = HeaderValue::try_from(format!("Node {}", self.token.make()))
            .map_err(|error| error::odd("authorization", error))?;
        token.set_sensitive(true);
        Ok(self.client.post(url).header(AUTHORIZATION, token))
    }

    /// Sends it, and returns what is answered if that is no failure.
    async fn ask(&self, what: &str, request: RequestBuilder) -> Result<Bytes> {
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

/// Reads an answer's body, up to a bound.
async fn collect(what: &str, mut response: Response) -> Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let piece = response.chunk().await;
        match piece.map_err(|failure| error::unsent(what, failure))? {
            Some(piece) if body.len() + piece.len() > MAX_ANSWER => {
                return Err(ProviderError::new(
                    ProviderErrorKind::Failed,
                    format!("the node's answer to `{what}` is over {MAX_ANSWER} bytes"),
                ));
            }
            Some(piece) => body.extend_from_slice(&piece),
            None => return Ok(body.freeze()),
        }
    }
}

fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| error::odd(what, error))
}
