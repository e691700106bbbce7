//! What only the host may ask, and what anybody may.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use sandyard_wire::host::{Activity, InitRequest};
use sandyard_wire::http::Metrics;
use sandyard_wire::routes::{self, content_type};

use crate::body;
use crate::call::{check, finish};
use crate::client::AgentClient;
use crate::error::ClientError;

impl AgentClient {
    /// Asks whether the agent is alive.
    pub async fn health(&self) -> Result<(), ClientError> {
        let request = finish(self.request(Method::GET, routes::HEALTH), body::empty())?;
        let (status, reply) = self.exchange(routes::HEALTH, request).await?;
        check(routes::HEALTH, status, StatusCode::NO_CONTENT, &reply)
    }

    /// Tells the agent what sandbox it is in. Only over the host's own socket.
    pub async fn init(&self, init: &InitRequest) -> Result<(), ClientError> {
        let json = serde_json::to_vec(init).map_err(|error| ClientError::Request {
            detail: error.to_string(),
        })?;
        let builder = self
            .request(Method::POST, routes::INIT)
            .header(http::header::CONTENT_TYPE, content_type::JSON);
        let request = finish(builder, body::full(json))?;
        let (status, reply) = self.exchange(routes::INIT, request).await?;
        check(routes::INIT, status, StatusCode::NO_CONTENT, &reply)
    }

    /// Asks what the sandbox is busy with. Only over the host's own socket.
    pub async fn activity(&self) -> Result<Activity, ClientError> {
        self.get(routes::ACTIVITY).await
    }

    /// Asks how much the sandbox uses.
    pub async fn metrics(&self) -> Result<Metrics, ClientError> {
        self.get(routes::METRICS).await
    }

    /// Asks for the sandbox's variables.
    pub async fn envs(&self) -> Result<BTreeMap<String, String>, ClientError> {
        self.get(routes::ENVS).await
    }
}
