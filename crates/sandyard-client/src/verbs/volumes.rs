//! Folders that outlive sandboxes.

use reqwest::Method;
use serde_json::json;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::Volume;
use crate::request::Patience;

impl Client {
    /// The caller's volumes.
    ///
    /// # Errors
    ///
    /// When the server cannot tell.
    pub async fn volumes(&self) -> Result<Vec<Volume>> {
        let operation = "listing volumes";
        let answer: Wrapped = self.get(operation, ["volumes"]).await?;
        Ok(answer.page(operation, "volumes")?.items)
    }

    /// Makes an empty volume.
    ///
    /// # Errors
    ///
    /// When the name makes no sense or is taken, or there are as many as allowed.
    pub async fn create_volume(&self, name: &str) -> Result<Volume> {
        let request = self
            .request(Method::POST, ["volumes"])
            .json(&json!({ "name": name }));
        self.fetch("making a volume", Patience::Short, request)
            .await
    }

    /// Shows a volume, by name or id.
    ///
    /// # Errors
    ///
    /// When there is no such volume of the caller's.
    pub async fn volume(&self, name: &str) -> Result<Volume> {
        self.get("looking at a volume", ["volumes", name]).await
    }

    /// Removes a volume and all that is in it, by name or id.
    ///
    /// # Errors
    ///
    /// When there is no such volume of the caller's, or a sandbox has it; it says which.
    pub async fn delete_volume(&self, name: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["volumes", name]);
        self.send("deleting a volume", Patience::Short, request)
            .await?;
        Ok(())
    }
}
