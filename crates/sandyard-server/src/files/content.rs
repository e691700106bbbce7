//! Bodies of requests as readers, files as bodies of responses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use sandyard_agent_client::{AgentClient, ClientError, FileStream};
use sandyard_core::ErrorKind;
use sandyard_provider::ArchiveReader;
use sandyard_service::{Live, ServiceError, ServiceResult};
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use super::write_result::FileWriteResult;
use crate::app::App;
use crate::listen::is_body_timeout;

/// Longest wait for the next bytes of a client.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Number of bytes that were read so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ByteCount(Arc<AtomicU64>);

impl ByteCount {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds bytes and returns their number so far.
    fn add(&self, len: usize) -> u64 {
        let len = len as u64;
        self.0.fetch_add(len, Ordering::Relaxed) + len
    }
}

/// Content that is written to a sandbox.
pub(crate) struct Upload {
    reader: ArchiveReader,
    count: ByteCount,
    limit: Option<u64>,
}

/// The body of a request, to be written. A client that breaks off causes an error, not an end of the content.
pub(crate) fn read_body(app: &App, body: Body) -> Upload {
    let pieces = body
        .into_data_stream()
        .map(|piece| piece.map_err(io::Error::other));
    Upload::new(app, pieces)
}

impl Upload {
    /// Content from chunks; their number of bytes and the wait for each are bounded.
    pub(super) fn new<S>(app: &App, pieces: S) -> Self
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let limit = app.settings().upload_limit_bytes;
        let count = ByteCount::default();
        let reader = Box::pin(read_chunks(pieces, count.clone(), limit));
        Self {
            reader,
            count,
            limit,
        }
    }

    /// Refuses content whose announced size is too large.
    pub(super) fn check_size(&self, size: Option<u64>) -> ServiceResult<()> {
        match (size, self.limit) {
            (Some(size), Some(limit)) if size > limit => Err(too_large(limit)),
            _ => Ok(()),
        }
    }

    pub(super) fn count(&self) -> ByteCount {
        self.count.clone()
    }

    pub(super) fn into_reader(self) -> ArchiveReader {
        self.reader
    }

    /// Writes the content to a file. If it breaks off, a new file is removed again.
    pub(super) async fn write(
        self,
        agent: &AgentClient,
        path: &str,
    ) -> ServiceResult<FileWriteResult> {
        let count = self.count();
        let path = self.write_all(agent, path).await?;
        Ok(FileWriteResult::new(path, count.get()))
    }

    /// Writes the content to a file and returns its absolute path.
    pub(crate) async fn write_all(self, agent: &AgentClient, path: &str) -> ServiceResult<String> {
        let written = agent.write_file_from(path, self.reader).await;
        match (written, self.limit) {
            (Ok(file), _) => Ok(file.path),
            (Err(_), Some(limit)) if self.count.get() > limit => Err(too_large(limit)),
            (Err(ClientError::Io { source, .. }), _) => Err(broke_off(source)),
            (Err(error), _) => Err(error.into()),
        }
    }
}

/// Translates a failure to read a body.
pub(super) fn broke_off(error: io::Error) -> ServiceError {
    let kind = match error.kind() {
        io::ErrorKind::FileTooLarge => ErrorKind::TooLarge,
        io::ErrorKind::TimedOut => ErrorKind::TimedOut,
        _ if is_body_timeout(&error) => ErrorKind::TimedOut,
        _ => ErrorKind::BadRequest,
    };
    let message = match kind {
        ErrorKind::TooLarge => "the content is too large",
        ErrorKind::TimedOut => "no more of the content was received in time",
        _ => "the content broke off before its end",
    };
    ServiceError::new(kind, message).source(error)
}

fn too_large(limit: u64) -> ServiceError {
    let text = format!("the content has more than {limit} bytes");
    ServiceError::new(ErrorKind::TooLarge, text).hint("the operator sets `server.upload_limit`")
}

/// A reader of chunks that counts and bounds their bytes, and bounds the wait for each.
fn read_chunks<S>(chunks: S, count: ByteCount, limit: Option<u64>) -> impl AsyncRead + Send
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let bounded = stream::unfold(Some(Box::pin(chunks)), move |chunks| {
        let count = count.clone();
        async move {
            let mut chunks = chunks?;
            match tokio::time::timeout(READ_TIMEOUT, chunks.next()).await {
                Ok(Some(Ok(chunk))) if count.add(chunk.len()) > limit.unwrap_or(u64::MAX) => {
                    Some((Err(io::ErrorKind::FileTooLarge.into()), None))
                }
                Ok(Some(Ok(chunk))) => Some((Ok(chunk), Some(chunks))),
                Ok(Some(Err(error))) => Some((Err(error), None)),
                Ok(None) => None,
                Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
            }
        }
    });
    StreamReader::new(Box::pin(bounded))
}

/// A file as a stream of chunks. The sandbox is in use until the stream ends or is dropped.
pub(super) fn chunks_of(
    live: Live,
    file: FileStream,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::unfold((live, file), |(live, mut file)| async move {
        let chunk = file.next().await?.map_err(io::Error::other);
        Some((chunk, (live, file)))
    })
}

/// A file as a response that a browser saves under its name.
pub(super) fn send_file(live: Live, file: FileStream, path: &str) -> Response {
    let size = file.size();
    let mut response = send_bytes(chunks_of(live, file), size);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_DISPOSITION, disposition(path));
    response
}

/// The content of a file as a response.
pub(crate) fn send_bytes<S>(chunks: S, size: Option<u64>) -> Response
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        // The content of a sandbox must never run as a page of this server.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let length = size.map(|size| [(header::CONTENT_LENGTH, size.to_string())]);
    (headers, length, Body::from_stream(chunks)).into_response()
}

/// The name under which to save: in ASCII for old clients, and in full (RFC 6266).
pub(super) fn disposition(path: &str) -> HeaderValue {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    let name = if name.is_empty() { "file" } else { name };
    let plain: String = name
        .chars()
        .map(|c| match c {
            '"' | '\\' | '%' => '_',
            ' '..='~' => c,
            _ => '_',
        })
        .collect();
    let whole = sandyard_core::percent::encode(name);
    HeaderValue::try_from(format!(
        "attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}"
    ))
    .expect("both names were made of printable ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[test]
    fn names_to_save_under_cannot_break_the_header() {
        let header = disposition("/a/b\"\r\nSet-Cookie: x=1;ü.txt");
        assert_eq!(
            header.to_str().unwrap(),
            "attachment; filename=\"b___Set-Cookie: x=1;_.txt\"; \
             filename*=UTF-8''b%22%0D%0ASet-Cookie%3A%20x%3D1%3B%C3%BC.txt"
        );
        assert_eq!(
            disposition("/").to_str().unwrap(),
            "attachment; filename=\"file\"; filename*=UTF-8''file"
        );
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_an_error() {
        let pieces = stream::iter([
            Ok(Bytes::from_static(b"half")),
            Err(io::ErrorKind::ConnectionReset.into()),
        ]);
        let count = ByteCount::default();
        let reader = read_chunks(pieces, count.clone(), None);
        let mut text = Vec::new();
        tokio::pin!(reader);
        let error = reader.read_to_end(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!((text, count.get()), (b"half".to_vec(), 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stays_silent_is_an_error() {
        let reader = read_chunks(stream::pending(), ByteCount::default(), None);
        tokio::pin!(reader);
        let error = reader.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_an_error() {
        let pieces = stream::iter([
            Ok(Bytes::from_static(b"1234")),
            Ok(Bytes::from_static(b"5")),
        ]);
        let reader = read_chunks(pieces, ByteCount::default(), Some(4));
        let mut text = Vec::new();
        tokio::pin!(reader);
        let error = reader.read_to_end(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
