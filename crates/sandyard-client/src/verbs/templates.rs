//! What sandboxes start from.

use reqwest::Method;
use tokio::io::AsyncRead;

use super::files::stream_body;
use super::listing::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::Template;
use crate::request::Patience;

impl Client {
    /// Lists templates.
    ///
    /// # Errors
    ///
    /// When the server cannot tell.
    pub async fn templates(&self) -> Result<Vec<Template>> {
        let operation = "listing templates";
        let answer: Wrapped = self.get(operation, ["templates"]).await?;
        Ok(answer.page(operation, "templates")?.items)
    }

    /// Makes a template from a tar archive of any size; for admins.
    ///
    /// # Errors
    ///
    /// When it is no archive, or the name is taken or makes no sense.
    pub async fn import_template(
        &self,
        name: &str,
        archive: impl AsyncRead + Send + 'static,
    ) -> Result<Template> {
        self.import_template_to(None, name, archive).await
    }

    /// Makes a template from a tar archive with one of the server's providers; none: the default. For admins.
    ///
    /// # Errors
    ///
    /// As [`Client::import_template`], or when there is no such provider.
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
        self.fetch("importing a template", Patience::Endless, request)
            .await
    }

    /// Removes a template; for admins.
    ///
    /// # Errors
    ///
    /// When there is no such template.
    pub async fn remove_template(&self, name: &str) -> Result<()> {
        self.remove_template_from(None, name).await
    }

    /// Removes a template of one of the server's providers; none: the caller's snapshot, or the default provider's.
    ///
    /// # Errors
    ///
    /// When there is no such template or provider.
    pub async fn remove_template_from(&self, provider: Option<&str>, name: &str) -> Result<()> {
        let request = self
            .request(Method::DELETE, ["templates", name])
            .query(&[("provider", provider)]);
        self.send("removing a template", Patience::Short, request)
            .await?;
        Ok(())
    }
}
