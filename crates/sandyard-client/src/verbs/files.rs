//! Files of a sandbox.

use bytes::Bytes;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Method};
use serde_json::json;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::download::Download;
use crate::model::FileEntry;
use crate::request::TimeLimit;

/// Size of the pieces in which an upload is read, in bytes.
const CHUNK: usize = 256 << 10;

impl Client {
    /// Writes a file and creates its missing parent directories.
    ///
    /// # Errors
    ///
    /// If the path cannot be written.
    pub async fn write(&self, sandbox: &str, path: &str, content: impl Into<Bytes>) -> Result<()> {
        self.put(sandbox, path, content.into().into(), None).await
    }

    /// Writes a file from a stream of any length.
    ///
    /// # Errors
    ///
    /// If the path cannot be written, or the stream fails.
    pub async fn upload(
        &self,
        sandbox: &str,
        path: &str,
        content: impl AsyncRead + Send + 'static,
        size_bytes: Option<u64>,
    ) -> Result<()> {
        self.put(sandbox, path, stream_body(content), size_bytes)
            .await
    }

    async fn put(
        &self,
        sandbox: &str,
        path: &str,
        body: Body,
        size_bytes: Option<u64>,
    ) -> Result<()> {
        let mut request = self
            .request(Method::PUT, ["sandboxes", sandbox, "files"])
            .query(&self.file_query(path))
            .body(body);
        if let Some(size) = size_bytes {
            request = request.header(CONTENT_LENGTH, size);
        }
        self.send("writing a file", TimeLimit::Unlimited, request)
            .await?;
        Ok(())
    }

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// If the file does not exist, or is larger.
    pub async fn read(&self, sandbox: &str, path: &str, limit: usize) -> Result<Vec<u8>> {
        let download = self.download(sandbox, path).await?;
        download.read_to_end(limit).await
    }

    /// Reads a file of any size as a stream.
    ///
    /// # Errors
    ///
    /// If the file does not exist.
    pub async fn download(&self, sandbox: &str, path: &str) -> Result<Download> {
        let operation = "reading a file";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "files"])
            .query(&self.file_query(path));
        let response = self.send(operation, TimeLimit::Unlimited, request).await?;
        Ok(Download::new(self, operation, response))
    }

    /// Lists a directory, down to `depth` levels.
    ///
    /// # Errors
    ///
    /// If the directory does not exist.
    pub async fn list_files(
        &self,
        sandbox: &str,
        path: &str,
        depth: u32,
    ) -> Result<Vec<FileEntry>> {
        let operation = "listing a directory";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "files", "list"])
            .query(&self.file_query(path))
            .query(&[("depth", depth)]);
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        Ok(answer.page(operation, "entries")?.items)
    }

    /// Returns information about a file or directory.
    ///
    /// # Errors
    ///
    /// If the file does not exist.
    pub async fn stat(&self, sandbox: &str, path: &str) -> Result<FileEntry> {
        let operation = "fetching information about a file";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "files", "stat"])
            .query(&self.file_query(path));
        let answer: Wrapped = self.fetch(operation, TimeLimit::Short, request).await?;
        answer.field(operation, "entry")
    }

    /// Creates a directory with its missing parents.
    ///
    /// # Errors
    ///
    /// If the path exists already.
    pub async fn make_folder(&self, sandbox: &str, path: &str) -> Result<()> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "files", "mkdir"])
            .query(&self.file_query(path));
        self.send("creating a directory", TimeLimit::Short, request)
            .await?;
        Ok(())
    }

    /// Moves a file or directory.
    ///
    /// # Errors
    ///
    /// If the file does not exist.
    pub async fn rename(&self, sandbox: &str, from: &str, to: &str) -> Result<()> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "files", "rename"])
            .json(&json!({ "from": from, "to": to, "user": self.file_user() }));
        self.send("moving a file", TimeLimit::Short, request)
            .await?;
        Ok(())
    }

    /// Deletes a file, or a directory with everything in it.
    ///
    /// # Errors
    ///
    /// If the file cannot be deleted.
    pub async fn remove(&self, sandbox: &str, path: &str) -> Result<()> {
        let request = self
            .request(Method::DELETE, ["sandboxes", sandbox, "files"])
            .query(&self.file_query(path));
        self.send("deleting a file", TimeLimit::Unlimited, request)
            .await?;
        Ok(())
    }
}

impl Client {
    /// Query of a file route: path and user.
    pub(super) fn file_query<'a>(&'a self, path: &'a str) -> Vec<(&'static str, &'a str)> {
        let user = self.file_user().map(|user| ("user", user));
        std::iter::once(("path", path)).chain(user).collect()
    }
}

/// Request body that is read while it is sent.
pub(super) fn stream_body(content: impl AsyncRead + Send + 'static) -> Body {
    Body::wrap_stream(ReaderStream::with_capacity(content, CHUNK))
}
