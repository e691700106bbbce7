//! What sandboxes start from.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_core::{Caller, ErrorKind, Scope};
use sandyard_provider::{ArchiveReader, Provider, ProviderErrorKind, Retry, TemplateInfo};

use super::snapshot::unsupported;
use crate::error::{ServiceError, ServiceResult};
use crate::places::location_of;
use crate::request::{Template, TemplateList};
use crate::service::Service;

/// How long a provider has to list what it has.
const LIST_WITHIN: Duration = Duration::from_secs(10);

impl Service {
    /// Lists templates of all providers: those for everybody, and the caller's own snapshots. A provider that cannot be reached
    /// hides none of the others'.
    pub async fn templates(&self, caller: &Caller) -> ServiceResult<TemplateList> {
        let local = self.places().local().iter();
        let able: Vec<_> = local
            .filter(|provider| provider.info().capabilities.can_manage_templates)
            .collect();
        let asked = able.iter().map(|provider| async {
            let listing = self.templates_of(caller, provider);
            let listed = tokio::time::timeout(LIST_WITHIN, listing).await;
            listed.unwrap_or_else(|_| {
                let message = "listing templates took too long";
                Err(ServiceError::new(ErrorKind::TimedOut, message))
            })
        });
        let mut list = TemplateList::default();
        let mut first_error = None;
        let mut answers = 0;
        for (provider, listed) in able.iter().zip(join_all(asked).await) {
            let name = &provider.info().name;
            match listed {
                Ok(templates) => {
                    answers += 1;
                    list.templates.extend(templates);
                }
                Err(error) => {
                    list.silent.push((name.clone(), error.message.clone()));
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if answers == 0 => Err(error),
            None if able.is_empty() => {
                let name = &self.places().default().info().name;
                Err(unsupported("list the templates of", name))
            }
            _ => Ok(list),
        }
    }

    /// Lists what sandboxes can start from with one provider.
    async fn templates_of(
        &self,
        caller: &Caller,
        provider: &Arc<dyn Provider>,
    ) -> ServiceResult<Vec<Template>> {
        if location_of(provider).is_none() {
            let message = "it was not reached so far";
            return Err(ServiceError::new(ErrorKind::Unavailable, message));
        }
        let templates = provider.templates().await?;
        let snapshots = self.store().snapshots(&provider.info().location).await?;
        let name = &provider.info().name;
        let view = |info: TemplateInfo| {
            let snapshot = snapshots.iter().find(|one| one.name == info.name);
            let is_visible = match snapshot {
                Some(snapshot) => caller.owns(&snapshot.owner),
                None => caller.is_admin() || info.is_ours || self.is_for_users(name, &info.name),
            };
            is_visible.then(|| Template {
                provider: name.clone(),
                info,
                owner: snapshot.map(|one| one.owner.clone()),
                label: snapshot.and_then(|one| one.alias.clone()),
            })
        };
        Ok(templates.into_iter().filter_map(view).collect())
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

    /// Makes a template from a tar archive, with the provider named, else the default; for admins, since everybody may then
    /// start from it.
    pub async fn import_template(
        &self,
        caller: &Caller,
        provider: Option<&str>,
        name: &str,
        archive: ArchiveReader,
    ) -> ServiceResult<Template> {
        must_be_admin(caller)?;
        let provider = match provider {
            Some(name) => self.enabled(name)?,
            None => self.places().default(),
        };
        let made = provider.import_template(name, archive).await;
        Ok(Template {
            info: made?,
            provider: provider.info().name.clone(),
            owner: None,
            label: None,
        })
    }

    /// Removes a template of the provider named, else the caller's snapshot of that name wherever it is, else the default
    /// provider's: an admin any, a user its own snapshots. Sandboxes made from it live on.
    pub async fn remove_template(
        &self,
        caller: &Caller,
        provider: Option<&str>,
        name: &str,
    ) -> ServiceResult<()> {
        let provider = match provider {
            Some(name) => self.enabled(name)?.clone(),
            None => {
                let bound = self.bound_by_snapshot(&caller.name, Some(name), None);
                bound
                    .await?
                    .unwrap_or_else(|| self.places().default().clone())
            }
        };
        self.remove_template_of(caller, &provider, name).await
    }

    /// Removes a template of one provider.
    pub(super) async fn remove_template_of(
        &self,
        caller: &Caller,
        provider: &Arc<dyn Provider>,
        name: &str,
    ) -> ServiceResult<()> {
        let location = &provider.info().location;
        let shown = name;
        let name = &self
            .template_called(caller, location, &caller.name, name)
            .await?;
        let owner = self.store().snapshot_owner(location, name).await?;
        match &owner {
            Some(owner) if caller.owns(owner) => {}
            Some(_) => return Err(no_template(shown)),
            None if caller.has(Scope::Admin) => {}
            None => {
                return Err(no_template(shown)
                    .hint("only an admin removes templates that are for everybody"));
            }
        }
        match provider.remove_template(name).await {
            Ok(()) => {}
            // A snapshot whose making was cut short may be known here and nowhere else.
            Err(error) if error.kind == ProviderErrorKind::NotFound && owner.is_some() => {}
            // What is everybody's must not stay somebody's, also where it cannot be removed.
            Err(error)
                if error.retry == Retry::Never
                    && owner.is_some()
                    && caller.is_admin()
                    && self.is_reserved(name) =>
            {
                tracing::warn!(%error, template = name, "A template for everybody is nobody's snapshot any more");
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

fn must_be_admin(caller: &Caller) -> ServiceResult<()> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    Err(ServiceError::new(
        ErrorKind::Forbidden,
        "only an admin may change templates",
    ))
}
