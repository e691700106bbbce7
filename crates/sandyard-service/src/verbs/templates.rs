//! Lists, imports and removes templates.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_core::{Caller, ErrorKind, Scope};
use sandyard_provider::{ArchiveReader, Provider, ProviderErrorKind, Retry, TemplateInfo};

use super::snapshot::unsupported;
use crate::error::{Result, ServiceError};
use crate::request::{Template, TemplateList};
use crate::service::Service;
use crate::state::provider_registry::location_of;

/// How long a provider may take to list its templates.
const LIST_WITHIN: Duration = Duration::from_secs(10);

impl Service {
    /// Lists the templates of all providers: those for everybody, and the caller's own snapshots. An unreachable provider does not hide
    /// the templates of the others.
    pub async fn templates(&self, caller: &Caller) -> Result<TemplateList> {
        let local = self.registry().local().iter();
        let capable: Vec<_> = local
            .filter(|provider| provider.info().capabilities.can_manage_templates)
            .collect();
        let listings = capable.iter().map(|provider| async {
            let listing = self.templates_of(caller, provider);
            let listed = tokio::time::timeout(LIST_WITHIN, listing).await;
            listed.unwrap_or_else(|_| {
                let message = "listing templates took too long";
                Err(ServiceError::timed_out(message))
            })
        });
        let mut list = TemplateList::default();
        let mut first_error = None;
        let mut answers = 0;
        for (provider, listed) in capable.iter().zip(join_all(listings).await) {
            let name = &provider.info().name;
            match listed {
                Ok(templates) => {
                    answers += 1;
                    list.templates.extend(templates);
                }
                Err(error) => {
                    list.unavailable.push((name.clone(), error.message.clone()));
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if answers == 0 => Err(error),
            None if capable.is_empty() => {
                let name = &self.registry().default().info().name;
                Err(unsupported("list the templates of", name))
            }
            _ => Ok(list),
        }
    }

    /// Lists the templates of one provider.
    async fn templates_of(
        &self,
        caller: &Caller,
        provider: &Arc<dyn Provider>,
    ) -> Result<Vec<Template>> {
        if location_of(provider).is_none() {
            let message = "it has not been reached yet";
            return Err(ServiceError::unavailable(message));
        }
        let templates = provider.templates().await?;
        let snapshots = self.store().snapshots(&provider.info().location).await?;
        let name = &provider.info().name;
        let view = |info: TemplateInfo| {
            let snapshot = snapshots.iter().find(|snapshot| snapshot.name == info.name);
            let is_visible = match snapshot {
                Some(snapshot) => caller.can_access(&snapshot.owner) || snapshot.is_public,
                None => caller.is_admin() || info.is_ours || self.is_for_users(name, &info.name),
            };
            is_visible.then(|| Template {
                provider: name.clone(),
                info,
                owner: snapshot.map(|snapshot| snapshot.owner.clone()),
                // A name of another user's may be one of the caller's own as well.
                label: snapshot
                    .filter(|snapshot| caller.can_access(&snapshot.owner))
                    .and_then(|snapshot| snapshot.alias.clone()),
                is_public: snapshot.is_none_or(|snapshot| snapshot.is_public),
            })
        };
        Ok(templates.into_iter().filter_map(view).collect())
    }

    /// Fails for a snapshot of another user, as if it did not exist.
    pub(crate) async fn check_template(
        &self,
        caller: &Caller,
        location: &str,
        name: &str,
    ) -> Result<()> {
        if caller.is_admin() {
            return Ok(());
        }
        match self.store().snapshot(location, name).await? {
            Some(snapshot) if !caller.can_access(&snapshot.owner) && !snapshot.is_public => {
                Err(no_template(name))
            }
            _ => Ok(()),
        }
    }

    /// Creates a template from a tar archive, at the named provider or the default one. Only for admins, because everybody may then use it.
    pub async fn import_template(
        &self,
        caller: &Caller,
        provider: Option<&str>,
        name: &str,
        archive: ArchiveReader,
    ) -> Result<Template> {
        must_be_admin(caller)?;
        let provider = match provider {
            Some(name) => self.enabled_provider(name)?,
            None => self.registry().default(),
        };
        let info = provider.import_template(name, archive).await?;
        Ok(Template {
            info,
            provider: provider.info().name.clone(),
            owner: None,
            label: None,
            is_public: true,
        })
    }

    /// Removes a template of the named provider; without a name, the caller's snapshot with that name at any provider, else a template of
    /// the default provider. Admins may remove any, users their own snapshots. Sandboxes that were created from it stay.
    pub async fn remove_template(
        &self,
        caller: &Caller,
        provider: Option<&str>,
        name: &str,
    ) -> Result<()> {
        let provider = self.template_provider(caller, provider, name).await?;
        self.remove_template_of(caller, &provider, name).await
    }

    async fn template_provider(
        &self,
        caller: &Caller,
        provider: Option<&str>,
        name: &str,
    ) -> Result<Arc<dyn Provider>> {
        if let Some(name) = provider {
            return Ok(self.enabled_provider(name)?.clone());
        }
        let bound = self.bound_by_snapshot(&caller.name, Some(name), None);
        let default = || self.registry().default().clone();
        Ok(bound.await?.unwrap_or_else(default))
    }

    /// Lets every user start sandboxes from a snapshot of the caller, or only the caller again. Other templates are for everybody.
    pub async fn publish_template(
        &self,
        caller: &Caller,
        provider: Option<&str>,
        name: &str,
        is_public: bool,
    ) -> Result<()> {
        let provider = self.template_provider(caller, provider, name).await?;
        let location = &provider.info().location;
        let called = self.template_called(caller, location, &caller.name, name);
        let called = called.await?;
        match self.store().snapshot_owner(location, &called).await? {
            Some(owner) if caller.can_access(&owner) => {
                let store = self.store();
                Ok(store.publish_snapshot(location, &called, is_public).await?)
            }
            Some(_) => Err(no_template(name)),
            None if is_public => Ok(()),
            None => Err(ServiceError::new(
                ErrorKind::Conflict,
                format!("template `{name}` is for all users"),
            )
            .hint("only snapshots can be private")),
        }
    }

    /// Removes a template of one provider.
    pub(super) async fn remove_template_of(
        &self,
        caller: &Caller,
        provider: &Arc<dyn Provider>,
        name: &str,
    ) -> Result<()> {
        let location = &provider.info().location;
        let requested_name = name;
        let name = &self
            .template_called(caller, location, &caller.name, name)
            .await?;
        let owner = self.store().snapshot_owner(location, name).await?;
        match &owner {
            Some(owner) if caller.can_access(owner) => {}
            Some(_) => return Err(no_template(requested_name)),
            None if caller.has(Scope::Admin) => {}
            None => {
                return Err(no_template(requested_name)
                    .hint("only an admin may remove templates for everybody"));
            }
        }
        match provider.remove_template(name).await {
            Ok(()) => {}
            // The create of a snapshot may have been interrupted before the template existed.
            Err(error) if error.kind == ProviderErrorKind::NotFound && owner.is_some() => {}
            // A reserved template must not stay a user's snapshot, even if it cannot be removed.
            Err(error)
                if error.retry == Retry::Never
                    && owner.is_some()
                    && caller.is_admin()
                    && self.is_reserved(name) =>
            {
                tracing::warn!(%error, template = name, "A reserved template could not be removed; it is no longer a user's snapshot");
            }
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

fn must_be_admin(caller: &Caller) -> Result<()> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    Err(ServiceError::new(
        ErrorKind::Forbidden,
        "only an admin may change templates",
    ))
}
