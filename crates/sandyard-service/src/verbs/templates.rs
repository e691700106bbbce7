//! What sandboxes start from.

use sandyard_core::{Caller, ErrorKind, Scope};
use sandyard_provider::{ArchiveReader, ProviderErrorKind, TemplateInfo};

use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

impl Service {
    /// Lists templates: those for everybody, and the caller's own snapshots.
    pub async fn templates(&self, caller: &Caller) -> ServiceResult<Vec<TemplateInfo>> {
        let provider = self.places().default();
        let mut templates = provider.templates().await?;
        if !caller.is_admin() {
            let snapshots = self.store().snapshots(&provider.info().location).await?;
            let is_others = |name: &str| {
                snapshots
                    .iter()
                    .any(|snapshot| snapshot.name == name && !caller.owns(&snapshot.owner))
            };
            templates.retain(|template| !is_others(&template.name));
        }
        Ok(templates)
    }

    /// Refuses a template that is somebody else's snapshot, as if there were none.
    pub(crate) async fn check_template(
        &self,
        caller: &Caller,
        location: &str,
        name: &str,
    ) -> ServiceResult<()> {
        if caller.is_admin() {
            return Ok(());
        }
        match self.store().snapshot_owner(location, name).await? {
            Some(owner) if !caller.owns(&owner) => Err(no_template(name)),
            _ => Ok(()),
        }
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

    /// Removes a template: an admin any, a user its own snapshots. Sandboxes made from it live on.
    pub async fn remove_template(&self, caller: &Caller, name: &str) -> ServiceResult<()> {
        let provider = self.places().default();
        let location = &provider.info().location;
        let name = &self.template_called(location, &caller.name, name).await?;
        let owner = self.store().snapshot_owner(location, name).await?;
        match &owner {
            Some(owner) if caller.owns(owner) => {}
            Some(_) => return Err(no_template(name)),
            None if caller.has(Scope::Admin) => {}
            None => {
                return Err(no_template(name)
                    .hint("only an admin removes templates that are for everybody"));
            }
        }
        match provider.remove_template(name).await {
            Ok(()) => {}
            // A snapshot whose making was cut short may be known here and nowhere else.
            Err(error) if error.kind == ProviderErrorKind::NotFound && owner.is_some() => {}
            Err(error) => return Err(error.into()),
        }
        if owner.is_some() {
            self.store().delete_snapshot(location, name).await?;
        }
        Ok(())
    }
}

fn no_template(name: &str) -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, format!("no template `{name}`"))
        .field("template")
        .hint("GET /templates lists them")
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
