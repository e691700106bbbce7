//! Keeps a sandbox's files as a template.

use std::cmp::Reverse;
use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::{Provider, Retry};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, Snapshot, TimerPlan};
use serde_json::json;

use crate::error::{ServiceError, ServiceResult};
use crate::random;
use crate::request::Template;
use crate::service::Service;

/// Longest name an owner may give a snapshot.
const MAX_ALIAS: usize = 128;
/// Templates that clients ask for without being told to.
const RESERVED: [&str; 5] = [
    "base",
    "default",
    "host",
    "code-interpreter-v1",
    "mcp-gateway",
];
/// What the random names of snapshots' templates begin with.
const PREFIX: &str = "snapshot-";
/// Snapshots one user may have: each may be as large as a sandbox.
const MAX_SNAPSHOTS: usize = 100;

impl Service {
    /// Keeps a sandbox's files as a template that its owner calls `template`.
    ///
    /// Providers have one namespace for all templates. A user's name is therefore a label in the store, unique per owner, and the
    /// provider's template gets a random name: users neither block nor discover each other's names. An admin works in the
    /// provider's namespace itself and sees all of it.
    pub async fn snapshot(
        &self,
        caller: &Caller,
        name: &str,
        template: &str,
    ) -> ServiceResult<Template> {
        if caller.is_admin() {
            return self.make_snapshot(caller, name, template, None).await;
        }
        let provider_name = random_name()?;
        self.make_snapshot(caller, name, &provider_name, Some(template))
            .await
    }

    /// Makes the provider's template `template`, which its owner calls `label` from the start.
    pub(super) async fn make_snapshot(
        &self,
        caller: &Caller,
        name: &str,
        template: &str,
        label: Option<&str>,
    ) -> ServiceResult<Template> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller, template) = (self.clone(), caller.clone(), template.to_owned());
        let label = label.map(str::to_owned);
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Copy).await?;
            claim.check_exists()?;
            let provider = service.places().provider_of(&claim.row).await?;
            if !provider.info().capabilities.can_snapshot {
                return Err(unsupported("snapshot", &claim.row.provider));
            }
            let label = label.as_deref();
            // Two snapshots of one name take turns: the second must see what became of the first.
            let name = format!("{} {}", claim.row.owner, label.unwrap_or(&template));
            let _turn = service.snapshot_names().lock(&name).await;
            let (template, is_new) = service
                .reserve_snapshot(&caller, &claim.row, &provider, &template, label)
                .await?;
            let id = claim.row.provider_id.clone().unwrap_or_default();
            let info = match provider.snapshot(&id, &template).await {
                Ok(info) => info,
                Err(error) => {
                    // Where it may have been made after all, by this try or an earlier one, it stays its owner's: a template
                    // without a row is everybody's.
                    if is_new
                        && error.retry == Retry::Never
                        && !is_listed(&provider, &template).await.unwrap_or(true)
                    {
                        let location = &claim.row.location;
                        service.store().delete_snapshot(location, &template).await?;
                    }
                    return Err(error.into());
                }
            };
            let claim_owner = claim.row.owner.clone();
            let event = claim.event("snapshot", &caller, json!({"template": label.unwrap_or(&info.name)}));
            let noted = claim
                .commit(SandboxPatch::default(), vec![event], TimerPlan::Keep)
                .await;
            if let Err(error) = noted {
                // The template is there; only the history lacks it.
                tracing::warn!(%error, template = info.name, "A snapshot is not in its sandbox's history");
            }
            let provider = provider.info().name.clone();
            Ok(Template {
                provider,
                info,
                owner: Some(claim_owner),
                label: label.map(str::to_owned),
            })
        })
        .await
    }
}

impl Service {
    /// Keeps a sandbox's files as a template with a name of its own, which its owner may call `alias` from now on. Whatever the
    /// owner called so before stays, without that name.
    pub async fn snapshot_as(
        &self,
        caller: &Caller,
        name: &str,
        alias: Option<&str>,
    ) -> ServiceResult<Snapshot> {
        if let Some(alias) = alias {
            check_alias(alias)?;
        }
        let sandbox = self.existing(caller, name).await?;
        let template = random_name()?;
        let made = self.make_snapshot(caller, name, &template, None).await?;
        let snapshot = Snapshot {
            name: made.info.name,
            owner: sandbox.owner,
            alias: alias.map(str::to_owned),
            sandbox_id: Some(sandbox.id),
            created_ms: made
                .info
                .created_ms
                .unwrap_or_else(|| self.clock().now_ms()),
        };
        if let Some(alias) = alias {
            let (owner, name) = (&snapshot.owner, &snapshot.name);
            let location = &sandbox.location;
            self.store()
                .name_snapshot(location, owner, name, alias)
                .await?;
        }
        Ok(snapshot)
    }

    /// Lists the snapshots a caller may use, newest first; those of one sandbox, if that is named.
    pub async fn snapshots(
        &self,
        caller: &Caller,
        of: Option<&str>,
    ) -> ServiceResult<Vec<Snapshot>> {
        let mut snapshots = Vec::new();
        for location in self.places().local_locations() {
            snapshots.extend(self.store().snapshots(&location).await?);
        }
        snapshots.sort_by_key(|snapshot| Reverse(snapshot.created_ms));
        snapshots.retain(|snapshot| {
            let is_of = |id: &str| {
                snapshot
                    .sandbox_id
                    .as_ref()
                    .is_some_and(|sandbox| sandbox.as_str() == id)
            };
            caller.owns(&snapshot.owner) && of.is_none_or(is_of)
        });
        Ok(snapshots)
    }

    /// Says whether a name is for templates that everybody starts from: what clients ask for without being told to, and what this
    /// server starts from by itself.
    pub(super) fn is_reserved(&self, name: &str) -> bool {
        let settings = self.settings();
        let name = self
            .provider_in_template(name)
            .map_or(name, |(_, rest)| rest);
        let is_ready = settings
            .ready
            .iter()
            .any(|ready| ready.template.as_deref() == Some(name));
        let is_default = settings.default_template.as_deref() == Some(name);
        let is_bound = settings.template_providers.contains_key(name);
        let mut providers = self.places().local().iter();
        let is_providers =
            providers.any(|provider| is_same_template(&provider.info().default_template, name));
        RESERVED.contains(&name) || is_ready || is_default || is_bound || is_providers
    }

    /// The provider's name of the template that `name` means in a request of `caller` for `owner`: the owner's snapshot of that
    /// label, else the template of that name. Admins may also use the label of the only user who has it.
    pub(crate) async fn template_called(
        &self,
        caller: &Caller,
        location: &str,
        owner: &str,
        name: &str,
    ) -> ServiceResult<String> {
        if let Some(called) = self.store().snapshot_called(location, owner, name).await? {
            return Ok(called);
        }
        if !caller.is_admin() || self.store().snapshot_owner(location, name).await?.is_some() {
            return Ok(name.to_owned());
        }
        let all = self.store().snapshots(location).await?;
        let mut labelled = all
            .into_iter()
            .filter(|one| one.alias.as_deref() == Some(name));
        match (labelled.next(), labelled.next()) {
            (Some(one), None) => Ok(one.name),
            (None, _) => Ok(name.to_owned()),
            (Some(_), Some(_)) => Err(ServiceError::new(
                ErrorKind::Conflict,
                format!("several users have a snapshot called `{name}`"),
            )
            .field("template")
            .hint("use its `id` from GET /templates")),
        }
    }

    /// The same sandbox; see [`Self::with_template_labels`].
    pub async fn with_template_label(
        &self,
        caller: &Caller,
        sandbox: Sandbox,
    ) -> ServiceResult<Sandbox> {
        let shown = self.with_template_labels(caller, vec![sandbox.clone()]);
        Ok(shown.await?.pop().unwrap_or(sandbox))
    }

    /// Shows sandboxes that were made from snapshots with the names that their owners gave those.
    pub async fn with_template_labels(
        &self,
        caller: &Caller,
        mut sandboxes: Vec<Sandbox>,
    ) -> ServiceResult<Vec<Sandbox>> {
        let is_from_snapshot = |sandbox: &Sandbox| sandbox.template.starts_with(PREFIX);
        if !sandboxes.iter().any(is_from_snapshot) {
            return Ok(sandboxes);
        }
        let snapshots = self.snapshots(caller, None).await?;
        for sandbox in sandboxes.iter_mut().filter(|one| is_from_snapshot(one)) {
            let mut snapshots = snapshots.iter();
            let snapshot = snapshots.find(|snapshot| snapshot.name == sandbox.template);
            if let Some(label) = snapshot.and_then(|snapshot| snapshot.alias.clone()) {
                sandbox.template = label;
            }
        }
        Ok(sandboxes)
    }

    /// Makes a name its owner's before there is anything under it, so that nobody else ever sees it. Returns the name of the
    /// provider's template, and whether the row is new: where an earlier try was cut short, this one continues it.
    async fn reserve_snapshot(
        &self,
        caller: &Caller,
        sandbox: &Sandbox,
        provider: &Arc<dyn Provider>,
        name: &str,
        label: Option<&str>,
    ) -> ServiceResult<(String, bool)> {
        let shown = label.unwrap_or(name);
        let (location, owner) = (&sandbox.location, &sandbox.owner);
        let all = self.store().snapshots(location).await?;
        let is_for_everybody = match label {
            // Templates without an owner are the operator's: no label may hide them.
            Some(label) if !self.is_reserved(label) => {
                let info = provider.info();
                info.capabilities.can_manage_templates
                    && all.iter().all(|one| one.name != label)
                    && provider.templates().await?.iter().any(|template| {
                        template.name == label
                            && (template.is_ours || self.is_for_users(&info.name, label))
                    })
            }
            _ => !caller.is_admin() && self.is_reserved(shown),
        };
        if is_for_everybody {
            return Err(ServiceError::new(
                ErrorKind::Conflict,
                format!("`{shown}` is the name of a template for everybody"),
            )
            .hint("choose another name"));
        }
        let is_taken = all
            .iter()
            .any(|one| one.owner == *owner && label.is_some_and(|label| one.name == label));
        let count = all.iter().filter(|one| one.owner == *owner).count();
        if count >= MAX_SNAPSHOTS && !caller.is_admin() {
            return Err(ServiceError::new(
                ErrorKind::QuotaExceeded,
                format!("`{owner}` has {count} snapshots, as many as allowed"),
            )
            .hint("remove one: DELETE /templates/{name}"));
        }
        let snapshot = Snapshot {
            name: name.to_owned(),
            owner: owner.clone(),
            alias: label.map(str::to_owned),
            sandbox_id: Some(sandbox.id.clone()),
            created_ms: self.clock().now_ms(),
        };
        if !is_taken && self.store().insert_snapshot(location, &snapshot).await? {
            return Ok((snapshot.name, true));
        }
        // A row without a template is what an earlier try left: it kept the name since the template might have come after all.
        // Its own template name is used again, so that whatever of it still comes has an owner.
        let is_same = |one: &&Snapshot| {
            one.owner == *owner
                && (one.name == name || (label.is_some() && one.alias == snapshot.alias))
        };
        if let Some(earlier) = all.iter().find(is_same)
            && !is_listed(provider, &earlier.name).await?
        {
            return Ok((earlier.name.clone(), false));
        }
        Err(ServiceError::new(
            ErrorKind::Conflict,
            format!("a template `{shown}` exists already"),
        )
        .hint("choose another name, or remove that one"))
    }
}

/// Whether a provider has a template. One that does not list its templates may have it.
async fn is_listed(provider: &Arc<dyn Provider>, name: &str) -> ServiceResult<bool> {
    if !provider.info().capabilities.can_manage_templates {
        return Ok(true);
    }
    let templates = provider.templates().await?;
    Ok(templates.iter().any(|template| template.name == name))
}

/// A name for a provider's template that nobody can guess or want.
fn random_name() -> ServiceResult<String> {
    Ok(format!("{PREFIX}{}", random::id()?))
}

/// Whether a name means a provider's template, which may have a tag behind it that names need not say.
fn is_same_template(template: &str, name: &str) -> bool {
    // A colon before the last slash is a port's.
    let bare = match template.rsplit_once(':') {
        Some((bare, tag)) if !tag.contains('/') => bare,
        _ => template,
    };
    let latest = name.strip_suffix(":latest");
    !template.is_empty() && (name == template || name == bare || latest == Some(template))
}

/// The typed answer to what a provider cannot do.
pub(super) fn unsupported(operation: &str, provider: &str) -> ServiceError {
    ServiceError::new(
        ErrorKind::Unsupported,
        format!("provider `{provider}` cannot {operation} a sandbox"),
    )
    .hint("GET /health lists what each provider can do")
}

/// Refuses names that would not fit into a path or a line of text.
fn check_alias(alias: &str) -> ServiceResult<()> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    if (1..=MAX_ALIAS).contains(&alias.len()) && alias.bytes().all(is_good) {
        return Ok(());
    }
    Err(ServiceError::invalid(
        "name",
        format!("a snapshot's name is 1 to {MAX_ALIAS} letters, digits and `-_./:`"),
    ))
}
