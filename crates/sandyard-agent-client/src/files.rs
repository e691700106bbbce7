//! Reading files.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use sandyard_wire::routes::{self, query};

use crate::body;
use crate::call::{finish, unexpected_status, within};
use crate::client::AgentClient;
use crate::connection::Sender;
use crate::error::{ClientError, Result};
use crate::query::with_query;

/// A download of a file. Dropping it stops the transfer.
#[derive(Debug)]
pub struct FileStream {
    body: Incoming,
    size: Option<u64>,
    silence: Option<Duration>,
    max_header_len: usize,
    is_over: bool,
    /// Held because the connection ends when its sender is dropped.
    _sender: Sender,
}

impl FileStream {
    /// Returns the size the agent announced. It cannot send more than that, and less is an error.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Waits for the next piece; none after the last, or after an error. Loses nothing when cancelled.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.is_over {
            return None;
        }
        let next = match self.silence {
            Some(limit) => within(routes::FILES, limit, self.read()).await,
            None => self.read().await,
        };
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }

    async fn read(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame
                .map_err(|error| ClientError::hyper(routes::FILES, self.max_header_len, error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl AgentClient {
    /// Opens a file for reading.
    pub async fn read_file(&self, path: &str) -> Result<FileStream> {
        let request = finish(
            self.request(Method::GET, &self.file_uri(path)),
            body::empty(),
        )?;
        within(routes::FILES, self.limits().call_timeout, async {
            let (sender, reply) = self.send_new(routes::FILES, request).await?;
            match reply.status() {
                StatusCode::OK => self.file_stream(sender, reply),
                status if status.is_client_error() || status.is_server_error() => {
                    Err(self.failure(routes::FILES, reply).await)
                }
                status => Err(unexpected_status(routes::FILES, status)),
            }
        })
        .await
    }

    fn file_stream(&self, sender: Sender, reply: Response<Incoming>) -> Result<FileStream> {
        let encoding = reply.headers().get(http::header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(ClientError::protocol(
                routes::FILES,
                "the content is encoded, which was not requested",
            ));
        }
        let body = reply.into_body();
        Ok(FileStream {
            size: body.size_hint().exact(),
            body,
            silence: self.limits().silence_timeout,
            max_header_len: self.limits().max_header_len,
            is_over: false,
            _sender: sender,
        })
    }

    /// Reads a whole file of at most `max` bytes.
    pub async fn read_to_vec(&self, path: &str, max: usize) -> Result<Vec<u8>> {
        let too_large = || ClientError::TooLarge {
            call: routes::FILES,
            part: "file",
            max,
        };
        let mut file = self.read_file(path).await?;
        if file.size().is_some_and(|size| size > max as u64) {
            return Err(too_large());
        }
        let mut content = Vec::new();
        while let Some(piece) = file.next().await {
            let piece = piece?;
            if piece.len() > max - content.len() {
                return Err(too_large());
            }
            content.extend_from_slice(&piece);
        }
        Ok(content)
    }

    /// The URI of a file for the plain HTTP routes.
    pub(crate) fn file_uri(&self, path: &str) -> String {
        let mut parameters = vec![(query::PATH, path)];
        if let Some(user) = &self.user {
            parameters.push((query::USERNAME, &user.name));
        }
        with_query(routes::FILES, &parameters)
    }
}
