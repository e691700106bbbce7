//! Directories as tar archives.

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use tokio::io::AsyncRead;

use super::files::stream_body;
use crate::Result;
use crate::client::Client;
use crate::download::Download;
use crate::request::TimeLimit;

const TAR: HeaderValue = HeaderValue::from_static("application/x-tar");

impl Client {
    /// Unpacks a tar archive into a directory of the sandbox.
    ///
    /// # Errors
    ///
    /// If the archive is not valid, or the directory cannot be written.
    pub async fn upload_folder(
        &self,
        sandbox: &str,
        path: &str,
        archive: impl AsyncRead + Send + 'static,
    ) -> Result<()> {
        let request = self
            .request(Method::POST, ["api", "sandboxes", sandbox, "copy-to"])
            .query(&self.file_query(path))
            .header(CONTENT_TYPE, TAR)
            .body(stream_body(archive));
        self.send("uploading an archive", TimeLimit::Unlimited, request)
            .await?;
        Ok(())
    }

    /// Downloads a file or directory of the sandbox as a tar archive.
    ///
    /// # Errors
    ///
    /// If the path does not exist.
    pub async fn download_folder(&self, sandbox: &str, path: &str) -> Result<Download> {
        let operation = "downloading an archive";
        let request = self
            .request(Method::POST, ["api", "sandboxes", sandbox, "copy-from"])
            .query(&self.file_query(path));
        let response = self.send(operation, TimeLimit::Unlimited, request).await?;
        Ok(Download::new(self, operation, response))
    }
}
