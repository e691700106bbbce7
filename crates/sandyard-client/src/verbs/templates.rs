//! Templates that sandboxes start from.

use reqwest::Method;
use tokio::io::AsyncRead;

use super::files::stream_body;
use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::Template;
use crate::request::TimeLimit;

impl Client {
    /// Lists templates.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub async fn templates(&self) -> Result<Vec<Template>> {
        let operation = "listing templates";
        let answer: Wrapped = self.get(operation, ["templates"]).await?;
        Ok(answer.page(operation, "templates")?.items)
    }

    /// Creates a template from a tar archive of any size. Requires an admin.
    ///
    /// # Errors
    ///
    /// If the archive is not valid, or the name is taken or not valid.
    pub async fn import_template(
        &self,
        name: &str,
        archive: impl AsyncRead + Send + 'static,
    ) -> Result<Template> {
        self.import_template_to(None, name, archive).await
    }

    /// Creates a template from a tar archive at a provider. `None`: the default provider. Requires an admin.
    ///
    /// # Errors
    ///
    /// As [`Client::import_template`], and if the provider does not exist.
    pub async fn import_template_to(
        &self,
        provider: Option<&str>,
        name: &str,
        archive: impl AsyncRead + Send + 'static,
    ) -> Result<Template> {
        let request = self
            .request(Method::PUT, ["templates", name])
            .query(&[("provider", provider)])
            .body(stream_body(archive));
        self.fetch("importing a template", TimeLimit::Unlimited, request)
            .await
    }

    /// Deletes a template.
    ///
    /// # Errors
    ///
    /// If the template does not exist.
    pub async fn remove_template(&self, name: &str) -> Result<()> {
        self.remove_template_from(None, name).await
    }

    /// Deletes a template of a provider. `None`: the caller's snapshot, or the default provider's template.
    ///
    /// # Errors
    ///
    /// If the template or provider does not exist.
    pub async fn remove_template_from(&self, provider: Option<&str>, name: &str) -> Result<()> {
        let request = self
            .request(Method::DELETE, ["templates", name])
            .query(&[("provider", provider)]);
        self.send("deleting a template", TimeLimit::Short, request)
            .await?;
        Ok(())
    }
}
