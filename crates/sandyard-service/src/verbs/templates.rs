//! What sandboxes start from.

use sandyard_core::{Caller, ErrorKind, Scope};
use sandyard_provider::{ArchiveReader, TemplateInfo};

use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

impl Service {
    /// Lists templates.
    pub async fn templates(&self, _caller: &Caller) -> ServiceResult<Vec<TemplateInfo>> {
        Ok(self.places().default().templates().await?)
    }

    /// Makes a template from a tar archive; for admins, since everybody may then start from it.
    pub async fn import_template(
        &self,
        caller: &Caller,
        name: &str,
        archive: ArchiveReader,
    ) -> ServiceResult<TemplateInfo> {
        must_be_admin(caller)?;
        Ok(self
            .places()
            .default()
            .import_template(name, archive)
            .await?)
    }

    /// Removes a template; for admins. Sandboxes made from it live on.
    pub async fn remove_template(&self, caller: &Caller, name: &str) -> ServiceResult<()> {
        must_be_admin(caller)?;
        Ok(self.places().default().remove_template(name).await?)
    }
}

fn must_be_admin(caller: &Caller) -> ServiceResult<()> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    Err(ServiceError::new(
        ErrorKind::Forbidden,
        "only an admin may change templates",
    ))
}
