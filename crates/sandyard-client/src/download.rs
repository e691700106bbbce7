//! A file or folder on its way here.

use std::io;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use crate::Result;
use crate::client::Client;
use crate::error::ClientError;

/// Bytes from a sandbox, as they come. Never held as a whole.
#[derive(Debug)]
pub struct Download {
    client: Client,
    operation: &'static str,
    response: reqwest::Response,
}

impl Download {
    pub(crate) fn new(
        client: &Client,
        operation: &'static str,
        response: reqwest::Response,
    ) -> Self {
        Self {
            client: client.clone(),
            operation,
            response,
        }
    }

    /// How many bytes there will be, if the server said so.
    pub fn size_bytes(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next bytes; none: that was all.
    ///
    /// # Errors
    ///
    /// When the connection breaks before the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| self.client.failed(self.operation, error))
    }

    /// The same as something to read from. A connection that breaks is an error there too, never an early end.
    pub fn into_reader(self) -> impl AsyncRead + Send + Unpin {
        let chunks = self.response.bytes_stream();
        StreamReader::new(chunks.map_err(|error| io::Error::other(error.without_url())))
    }

    /// All of it, if it is no more than `limit` bytes.
    ///
    /// # Errors
    ///
    /// When it is more, or the connection breaks.
    pub async fn read_to_end(mut self, limit: usize) -> Result<Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.next().await? {
            if whole.len() + chunk.len() > limit {
                return Err(ClientError::Protocol {
                    operation: self.operation,
                    problem: format!("more than {limit} bytes came"),
                });
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole)
    }
}
