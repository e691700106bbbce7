//! Files in a sandbox, in bytes; of any size where a stream is said.

use bytes::Bytes;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Method};
use serde_json::json;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::download::Download;
use crate::model::FileEntry;
use crate::request::Patience;

/// What is read from a file or pipe at once on its way to the server.
const CHUNK: usize = 256 << 10;

impl Client {
    /// Writes a whole file, with the folders above it.
    ///
    /// # Errors
    ///
    /// When the path cannot be written.
    pub async fn write(&self, sandbox: &str, path: &str, content: impl Into<Bytes>) -> Result<()> {
        self.put(sandbox, path, content.into().into(), None).await
    }

    /// Writes a file from a stream of any length.
    ///
    /// # Errors
    ///
    /// When the path cannot be written, or the stream fails.
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
            .query(&self.place(path))
            .body(body);
        if let Some(size) = size_bytes {
            request = request.header(CONTENT_LENGTH, size);
        }
        self.send("writing a file", Patience::Endless, request)
            .await?;
        Ok(())
    }

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it is longer.
    pub async fn read(&self, sandbox: &str, path: &str, limit: usize) -> Result<Vec<u8>> {
        let download = self.download(sandbox, path).await?;
        download.read_to_end(limit).await
    }

    /// Reads a file of any size as it comes.
    ///
    /// # Errors
    ///
    /// When there is no such file.
    pub async fn download(&self, sandbox: &str, path: &str) -> Result<Download> {
        let operation = "reading a file";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "files"])
            .query(&self.place(path));
        let response = self.send(operation, Patience::Endless, request).await?;
        Ok(Download::new(self, operation, response))
    }

    /// Lists a folder, so many levels deep.
    ///
    /// # Errors
    ///
    /// When there is no such folder.
    pub async fn list_files(
        &self,
        sandbox: &str,
        path: &str,
        depth: u32,
    ) -> Result<Vec<FileEntry>> {
        let operation = "listing a folder";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "files", "list"])
            .query(&self.place(path))
            .query(&[("depth", depth)]);
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        Ok(answer.page(operation, "entries")?.items)
    }

    /// What is known of a file or folder.
    ///
    /// # Errors
    ///
    /// When there is no such file.
    pub async fn stat(&self, sandbox: &str, path: &str) -> Result<FileEntry> {
        let operation = "looking at a file";
        let request = self
            .request(Method::GET, ["sandboxes", sandbox, "files", "stat"])
            .query(&self.place(path));
        let answer: Wrapped = self.fetch(operation, Patience::Short, request).await?;
        answer.one(operation, "entry")
    }

    /// Makes a folder, with those above it.
    ///
    /// # Errors
    ///
    /// When something is there already.
    pub async fn make_folder(&self, sandbox: &str, path: &str) -> Result<()> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "files", "mkdir"])
            .query(&self.place(path));
        self.send("making a folder", Patience::Short, request)
            .await?;
        Ok(())
    }

    /// Moves a file or folder.
    ///
    /// # Errors
    ///
    /// When there is no such file.
    pub async fn rename(&self, sandbox: &str, from: &str, to: &str) -> Result<()> {
        let request = self
            .request(Method::POST, ["sandboxes", sandbox, "files", "rename"])
            .json(&json!({ "from": from, "to": to, "user": self.file_user() }));
        self.send("moving a file", Patience::Short, request).await?;
        Ok(())
    }

    /// Removes a file, or a folder with all that is in it.
    ///
    /// # Errors
    ///
    /// When there is no such file.
    pub async fn remove(&self, sandbox: &str, path: &str) -> Result<()> {
        let request = self
            .request(Method::DELETE, ["sandboxes", sandbox, "files"])
            .query(&self.place(path));
        self.send("removing a file", Patience::Endless, request)
            .await?;
        Ok(())
    }
}

impl Client {
    /// Which file, and on whose behalf.
    pub(super) fn place<'a>(&'a self, path: &'a str) -> Vec<(&'static str, &'a str)> {
        let user = self.file_user().map(|user| ("user", user));
        std::iter::once(("path", path)).chain(user).collect()
    }
}

/// A body that is read while it is sent.
pub(super) fn stream_body(content: impl AsyncRead + Send + 'static) -> Body {
    Body::wrap_stream(ReaderStream::with_capacity(content, CHUNK))
}
