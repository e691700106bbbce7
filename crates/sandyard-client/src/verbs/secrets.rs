//! Secrets that sandboxes use without seeing them.

use reqwest::Method;

use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{Secret, SecretRequest};
use crate::request::Patience;

impl Client {
    /// The secrets the caller may use, without their values.
    ///
    /// # Errors
    ///
    /// When the server cannot tell.
    pub async fn secrets(&self) -> Result<Vec<Secret>> {
        let operation = "listing secrets";
        let answer: Wrapped = self.get(operation, ["secrets"]).await?;
        Ok(answer.page(operation, "secrets")?.items)
    }

    /// Keeps a secret, or changes the one of this name.
    ///
    /// # Errors
    ///
    /// When the name, a host or the placeholder makes no sense; it says which.
    pub async fn put_secret(&self, name: &str, request: &SecretRequest) -> Result<Secret> {
        let request = self.request(Method::PUT, ["secrets", name]).json(request);
        self.fetch("keeping a secret", Patience::Short, request)
            .await
    }

    /// Forgets a secret.
    ///
    /// # Errors
    ///
    /// When there is no such secret of the caller's.
    pub async fn delete_secret(&self, name: &str) -> Result<()> {
        let request = self.request(Method::DELETE, ["secrets", name]);
        self.send("deleting a secret", Patience::Short, request)
            .await?;
        Ok(())
    }
}
