//! Folders, as tar archives in both directions.

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use tokio::io::AsyncRead;

use super::files::stream_body;
use crate::Result;
use crate::client::Client;
use crate::download::Download;
use crate::request::Patience;

const TAR: HeaderValue = HeaderValue::from_static("application/x-tar");

impl Client {
    /// Unpacks a tar archive into a folder of the sandbox.
    ///
    /// # Errors
    ///
    /// When it is no archive, or the folder cannot be written.
    pub async fn upload_folder(
        &self,
        sandbox: &str,
        path: &str,
        archive: impl AsyncRead + Send + 'static,
    ) -> Result<()> {
        let request = self
            .request(Method::POST, ["api", "sandboxes", sandbox, "copy-to"])
            .query(&self.place(path))
            .header(CONTENT_TYPE, TAR)
            .body(stream_body(archive));
        self.send("copying a folder to a sandbox", Patience::Endless, request)
            .await?;
        Ok(())
    }

    /// A file or folder of the sandbox as a tar archive.
    ///
    /// # Errors
    ///
    /// When there is no such file or folder.
    pub async fn download_folder(&self, sandbox: &str, path: &str) -> Result<Download> {
        let operation = "copying a folder from a sandbox";
        let request = self
            .request(Method::POST, ["api", "sandboxes", sandbox, "copy-from"])
            .query(&self.place(path));
        let response = self.send(operation, Patience::Endless, request).await?;
        Ok(Download::new(self, operation, response))
    }
}
