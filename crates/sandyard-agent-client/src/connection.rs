//! One HTTP/1.1 connection to an agent.

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use crate::body::RequestBody;
use crate::endpoint::Endpoint;
use crate::error::{ClientError, Result};
use crate::limits::Limits;

/// Headers in a reply; envd sends about ten.
const MAX_HEADERS: usize = 64;

/// Read buffer at most. Larger does not move files faster.
const MAX_READ_BUFFER: usize = 256 << 10;

/// The sending half of a connection. The other half is a task that ends when this and the reply are dropped.
pub(crate) type Sender = SendRequest<RequestBody>;

/// Opens a connection; the caller bounds the time.
pub(crate) async fn open(endpoint: &Endpoint, limits: &Limits) -> Result<Sender> {
    let stream = endpoint
        .dial()
        .await
        .map_err(|source| ClientError::Connect {
            endpoint: endpoint.to_string(),
            source,
        })?;
    let (sender, connection) = http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_header_size(limits.max_header_len)
        .max_buf_size(MAX_READ_BUFFER.max(limits.max_header_len))
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| ClientError::hyper("handshake", limits.max_header_len, error))?;
    tokio::spawn(async move {
        // The caller that waits for the reply gets the error.
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}
