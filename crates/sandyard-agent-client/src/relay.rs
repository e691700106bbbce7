//! Relayed output.

use http::{Method, StatusCode};
use sandyard_wire::routes::{self, query};

use crate::body;
use crate::call::{check, finish};
use crate::client::AgentClient;
use crate::error::Result;
use crate::query::with_query;

impl AgentClient {
    /// Confirms that all output a relayed reader was given is delivered. Only over the host's own socket.
    pub async fn finish_relay(&self, reader: &str) -> Result<()> {
        let uri = with_query(routes::RELAY_FINISHED, &[(query::READER, reader)]);
        let request = finish(self.request(Method::POST, &uri), body::empty())?;
        let (status, reply) = self.exchange(routes::RELAY_FINISHED, request).await?;
        check(
            routes::RELAY_FINISHED,
            status,
            StatusCode::NO_CONTENT,
            &reply,
        )
    }
}
