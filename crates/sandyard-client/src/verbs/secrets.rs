//! Secrets that sandboxes use without seeing them.

use reqwest::Method;

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{Secret, SecretRequest};
use crate::request::TimeLimit;

impl Client {
    /// Lists the secrets that the caller may use, without their values.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub async fn secrets(&self) -> Result<Vec<Secret>> {
        let operation = "listing secrets";
        let answer: Wrapped = self.get(operation, ["secrets"]).await?;
        Ok(answer.page(operation, "secrets")?.items)
    }

    /// Creates or replaces a secret.
    ///
    /// # Errors
    ///
    /// If the name, a host or the placeholder is not valid; the error names it.
    pub async fn put_secret(&self, name: &str, request: &SecretRequest) -> Result<Secret> {
        let request = self.request(Method::PUT, ["secrets", name]).json(request);
        self.fetch("storing a secret", TimeLimit::Short, request)
            .await
    }

    /// Deletes a secret.
    ///
    /// # Errors
    ///
    /// If the caller has no such secret.
    pub async fn delete_secret(&self, name: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["secrets", name]);
        self.send("deleting a secret", TimeLimit::Short, request)
            .await?;
        Ok(())
    }
}
