//! Output that is passed on to somebody else.

use http::{Method, StatusCode};
use sandyard_wire::routes::{self, query};

use crate::body;
use crate::call::{check, finish};
use crate::client::AgentClient;
use crate::error::ClientError;
use crate::query::with_query;

impl AgentClient {
    /// Says that all output a relayed reader was given got where it was meant for. Only over the host's own socket.
    pub async fn left(&self, reader: &str) -> Result<(), ClientError> {
        let uri = with_query(routes::LEFT, &[(query::READER, reader)]);
        let request = finish(self.request(Method::POST, &uri), body::empty())?;
        let (status, reply) = self.exchange(routes::LEFT, request).await?;
        check(routes::LEFT, status, StatusCode::NO_CONTENT, &reply)
    }
}
