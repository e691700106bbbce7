//! Volumes: storage that outlives sandboxes.

use reqwest::Method;
use serde_json::json;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::Volume;
use crate::request::TimeLimit;

impl Client {
    /// Lists the caller's volumes.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub async fn volumes(&self) -> Result<Vec<Volume>> {
        let operation = "listing volumes";
        let answer: Wrapped = self.get(operation, ["volumes"]).await?;
        Ok(answer.page(operation, "volumes")?.items)
    }

    /// Creates an empty volume.
    ///
    /// # Errors
    ///
    /// If the name is taken or not valid, or the maximum number of volumes is reached.
    pub async fn create_volume(&self, name: &str) -> Result<Volume> {
        let request = self
            .request(Method::POST, ["volumes"])
            .json(&json!({ "name": name }));
        self.fetch("creating a volume", TimeLimit::Short, request)
            .await
    }

    /// Returns a volume by name or ID.
    ///
    /// # Errors
    ///
    /// If the caller has no such volume.
    pub async fn volume(&self, name: &str) -> Result<Volume> {
        self.get("fetching a volume", ["volumes", name]).await
    }

    /// Deletes a volume and all files in it, by name or ID.
    ///
    /// # Errors
    ///
    /// If the caller has no such volume, or a sandbox uses it; the error names the sandbox.
    pub async fn delete_volume(&self, name: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["volumes", name]);
        self.send("deleting a volume", TimeLimit::Short, request)
            .await?;
        Ok(())
    }
}
