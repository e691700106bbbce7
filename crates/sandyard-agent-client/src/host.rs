//! Health, settings, activity and metrics of a sandbox.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use sandyard_wire::host::{Activity, InitRequest};
use sandyard_wire::http::Metrics;
use sandyard_wire::routes;

use crate::body;
use crate::call::{check, finish};
use crate::client::AgentClient;
use crate::error::Result;

impl AgentClient {
    /// Checks that the agent is alive.
    pub async fn health(&self) -> Result<()> {
        let request = finish(self.request(Method::GET, routes::HEALTH), body::empty())?;
        let (status, reply) = self.exchange(routes::HEALTH, request).await?;
        check(routes::HEALTH, status, StatusCode::NO_CONTENT, &reply)
    }

    /// Sends the sandbox's settings to the agent. Only over the host's own socket.
    pub async fn init(&self, init: &InitRequest) -> Result<()> {
        self.post(routes::INIT, init).await
    }

    /// Reads what the sandbox is busy with. Only over the host's own socket.
    pub async fn activity(&self) -> Result<Activity> {
        self.get(routes::ACTIVITY).await
    }

    /// Reads the sandbox's use of resources.
    pub async fn metrics(&self) -> Result<Metrics> {
        self.get(routes::METRICS).await
    }

    /// Reads the sandbox's environment variables.
    pub async fn envs(&self) -> Result<BTreeMap<String, String>> {
        self.get(routes::ENVS).await
    }
}
