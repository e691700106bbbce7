//! The calls, each a request to the other server.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_provider::{Answer, Call, Forward, Provider, ProviderInfo, Result};
use serde_json::to_vec;
use tokio_util::io::ReaderStream;

use super::error::unreadable;
use super::tunnel::Tunnel;
use super::{NodeProvider, SetNetworkRequest};
use crate::agent_client;

#[async_trait]
impl Forward for NodeProvider {
    async fn forward(&self, call: &Call<'_>) -> Result<Answer> {
        let json = |body: serde_json::Result<Vec<u8>>| {
            body.map_err(|error| unreadable(call.verb().as_str(), error))
        };
        match call {
            Call::Agent(address) => {
                let tunnel = Tunnel::new(self.node.clone(), &address.id);
                let endpoint = Endpoint::Custom(Arc::new(tunnel));
                let client = agent_client::with_token(endpoint, &address.access_token)?;
                Ok(client.into())
            }
            // Secrets do not travel between servers: the other one finds the grant in the store that both share.
            Call::SetNetwork { id, grant } => {
                let request = SetNetworkRequest {
                    id: id.as_ref().into(),
                    sandbox_id: grant.sandbox_id.clone(),
                };
                self.send(call, json(to_vec(&request))?).await
            }
            Call::ImportTemplate { name, archive } => {
                let request = self.request(call.verb())?;
                let body = reqwest::Body::wrap_stream(ReaderStream::new(archive.take()?));
                let request = request
                    .query(&[("name", name)])
                    .header(CONTENT_TYPE, "application/octet-stream")
                    .body(body);
                self.answer(call.verb(), request).await
            }
            // Asked first, for an answer that says what is wrong; then each connection opens it again.
            Call::OpenVolume { id } => {
                self.send(call, json(to_vec(call))?).await?;
                let tunnel = Tunnel::to_volume(self.node.clone(), id);
                let client = AgentClient::patient(Endpoint::Custom(Arc::new(tunnel)));
                Ok(client.as_user("root").into())
            }
            call => self.send(call, json(to_vec(call))?).await,
        }
    }
}

#[async_trait]
impl Provider for NodeProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    async fn check_health(&self) -> Result<()> {
        self.forward(&Call::CheckHealth).await?.try_into()
    }
}
