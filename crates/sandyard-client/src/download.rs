//! Streamed downloads.

use std::io;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use crate::Result;
use crate::client::Client;
use crate::error::ClientError;

/// Streamed download of a file or archive from a sandbox.
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

    /// Size in bytes, if the server sent it.
    pub fn size_bytes(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    ///
    /// If the connection breaks before the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| self.client.failed(self.operation, error))
    }

    /// Converts the download to a reader. A broken connection is a read error, never an early end of file.
    pub fn into_reader(self) -> impl AsyncRead + Send + Unpin {
        let chunks = self.response.bytes_stream();
        StreamReader::new(chunks.map_err(|error| io::Error::other(error.without_url())))
    }

    /// Reads the whole download of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// If the download is larger, or the connection breaks.
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
