//! Bytes to a TCP port inside the sandbox.

use std::io;

use http::{HeaderMap, Method, StatusCode};
use hyper_util::rt::TokioIo;
use sandyard_wire::Code;
use sandyard_wire::routes::{self, DIAL_UPGRADE, query};

use crate::body;
use crate::call::{finish, unexpected_status, within};
use crate::client::AgentClient;
use crate::endpoint::{PortDialling, PortStream};
use crate::error::{ClientError, Result};
use crate::query::with_query;

impl AgentClient {
    /// Connects to a TCP port on the sandbox's loopback: over the host's own socket, or through the endpoint's own dialling.
    pub async fn dial(&self, port: u16) -> Result<PortStream> {
        let limit = self.limits().call_timeout;
        match self.endpoint().dial_port(port) {
            Some(dialling) => {
                let limit = self.endpoint().port_timeout().unwrap_or(limit);
                within(routes::DIAL, limit, self.dial_directly(dialling)).await
            }
            None => within(routes::DIAL, limit, self.dial_by_agent(port)).await,
        }
    }

    async fn dial_directly(&self, dialling: PortDialling<'_>) -> Result<PortStream> {
        dialling.await.map_err(|source| match source.kind() {
            // The same error as the agent's.
            io::ErrorKind::ConnectionRefused => {
                ClientError::remote(Code::Unavailable, "nothing listens on the port")
            }
            _ => source
                .downcast()
                .unwrap_or_else(|source| ClientError::Connect {
                    endpoint: self.endpoint().to_string(),
                    source,
                }),
        })
    }

    async fn dial_by_agent(&self, port: u16) -> Result<PortStream> {
        let call = routes::DIAL;
        let uri = with_query(call, &[(query::PORT, &port.to_string())]);
        let builder = self
            .request(Method::GET, &uri)
            .header(http::header::CONNECTION, "upgrade")
            .header(http::header::UPGRADE, DIAL_UPGRADE);
        let request = finish(builder, body::empty())?;
        let (_sender, reply) = self.send_new(call, request).await?;
        let status = reply.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(self.failure(call, reply).await);
        }
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(unexpected_status(call, status));
        }
        let upgraded = hyper::upgrade::on(reply)
            .await
            .map_err(|error| self.hyper_error(call, error))?;
        Ok(PortStream {
            stream: Box::new(TokioIo::new(upgraded)),
            headers: HeaderMap::new(),
        })
    }
}
