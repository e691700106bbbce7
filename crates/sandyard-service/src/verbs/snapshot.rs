//! Stores a sandbox's files as a template.

use std::cmp::Reverse;
use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::{Provider, Retry};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, Snapshot, TimerPlan};
use serde_json::json;

use crate::error::{Result, ServiceError};
use crate::random;
use crate::request::Template;
use crate::service::Service;

/// Longest name that an owner may give a snapshot, in bytes.
const MAX_ALIAS: usize = 128;
/// Templates that clients request on their own.
const RESERVED: [&str; 5] = [
    "base",
    "default",
    "host",
    "code-interpreter-v1",
    "mcp-gateway",
];
/// The prefix of the random names of snapshots' templates.
const PREFIX: &str = "snapshot-";
/// Most snapshots of one user. Each may be as large as a sandbox.
const MAX_SNAPSHOTS: usize = 100;

impl Service {
    /// Stores a sandbox's files as a template with the owner's name `template`.
    ///
    /// Providers have one namespace for all templates. A user's name is therefore a label in the store, unique per owner, and the
    /// provider's template gets a random name: users neither block nor discover each other's names. An admin works in the
    /// provider's namespace itself and sees all of it.
    pub async fn snapshot(&self, caller: &Caller, name: &str, template: &str) -> Result<Template> {
        if caller.is_admin() {
            return self.make_snapshot(caller, name, template, None).await;
        }
        let provider_name = random_name()?;
        self.make_snapshot(caller, name, &provider_name, Some(template))
            .await
    }

    /// Creates the provider's template `template`, which has the owner's name `label` from the start.
    pub(super) async fn make_snapshot(
        &self,
        caller: &Caller,
        name: &str,
        template: &str,
        label: Option<&str>,
    ) -> Result<Template> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller, template) = (self.clone(), caller.clone(), template.to_owned());
        let label = label.map(str::to_owned);
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Copy).await?;
            claim.check_exists()?;
            let provider = service.registry().provider_of(&claim.row).await?;
            if !provider.info().capabilities.can_snapshot {
                return Err(unsupported("snapshot", &claim.row.provider));
            }
            let label = label.as_deref();
            // Two snapshots with one name run one after the other: the second must see the result of the first.
            let name = format!("{} {}", claim.row.owner, label.unwrap_or(&template));
            let _lock = service.snapshot_names().lock(&name).await;
            let (template, is_new) = service
                .reserve_snapshot(&caller, &claim.row, &provider, &template, label)
                .await?;
            let id = claim.row.provider_id.clone().unwrap_or_default();
            let info = match provider.snapshot(&id, &template).await {
                Ok(info) => info,
                Err(error) => {
                    // If this attempt or an earlier one may have made the template, the row stays: a template without a row is
                    // visible to everybody.
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
            let committed = claim
                .commit(SandboxPatch::default(), vec![event], TimerPlan::Keep)
                .await;
            if let Err(error) = committed {
                // The template exists; only the event is missing.
                tracing::warn!(%error, template = info.name, "Failed to add the event of a snapshot");
            }
            let provider = provider.info().name.clone();
            Ok(Template {
                provider,
                info,
                owner: Some(claim_owner),
                label: label.map(str::to_owned),
                is_public: false,
            })
        })
        .await
    }

    /// Stores a sandbox's files as a template with a random name, and gives it the owner's name `alias`. A snapshot that had this alias
    /// loses it.
    pub async fn snapshot_as(
        &self,
        caller: &Caller,
        name: &str,
        alias: Option<&str>,
    ) -> Result<Snapshot> {
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
            is_public: false,
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

    /// Lists the snapshots that a caller may use, newest first; only those of the sandbox `of`, if given.
    pub async fn snapshots(&self, caller: &Caller, of: Option<&str>) -> Result<Vec<Snapshot>> {
        let mut snapshots = Vec::new();
        for location in self.registry().local_locations() {
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
            caller.can_access(&snapshot.owner) && of.is_none_or(is_of)
        });
        Ok(snapshots)
    }

    /// Says whether a name is reserved for templates for everybody: those that clients request on their own, and those in the settings.
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
        let mut providers = self.registry().local().iter();
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
    ) -> Result<String> {
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
            (Some(_), Some(_)) => Err(ServiceError::conflict(format!(
                "several users have a snapshot called `{name}`"
            ))
            .field("template")
            .hint("use its `id` from GET /templates")),
        }
    }

    /// See [`Self::with_template_labels`].
    pub async fn with_template_label(&self, caller: &Caller, sandbox: Sandbox) -> Result<Sandbox> {
        let labelled = self.with_template_labels(caller, vec![sandbox.clone()]);
        Ok(labelled.await?.pop().unwrap_or(sandbox))
    }

    /// Replaces the random template names of sandboxes that were created from snapshots by the owners' names.
    pub async fn with_template_labels(
        &self,
        caller: &Caller,
        mut sandboxes: Vec<Sandbox>,
    ) -> Result<Vec<Sandbox>> {
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

    /// Inserts the row of a snapshot before its template exists, so that no other user ever sees the template. Returns the name of the
    /// provider's template, and whether the row is new: this attempt continues an earlier one that was interrupted.
    async fn reserve_snapshot(
        &self,
        caller: &Caller,
        sandbox: &Sandbox,
        provider: &Arc<dyn Provider>,
        name: &str,
        label: Option<&str>,
    ) -> Result<(String, bool)> {
        let requested_name = label.unwrap_or(name);
        let (location, owner) = (&sandbox.location, &sandbox.owner);
        let all = self.store().snapshots(location).await?;
        let is_for_all_users = match label {
            // Templates without an owner belong to the operator. No label may hide them.
            Some(label) if !self.is_reserved(label) => {
                let info = provider.info();
                info.capabilities.can_manage_templates
                    && all.iter().all(|one| one.name != label)
                    && provider.templates().await?.iter().any(|template| {
                        template.name == label
                            && (template.is_ours || self.is_for_users(&info.name, label))
                    })
            }
            _ => !caller.is_admin() && self.is_reserved(requested_name),
        };
        if is_for_all_users {
            return Err(ServiceError::conflict(format!(
                "`{requested_name}` is reserved for a template for everybody"
            ))
            .hint("choose another name"));
        }
        let is_taken = all
            .iter()
            .any(|one| one.owner == *owner && label.is_some_and(|label| one.name == label));
        let count = all.iter().filter(|one| one.owner == *owner).count();
        if count >= MAX_SNAPSHOTS && !caller.is_admin() {
            return Err(ServiceError::new(
                ErrorKind::QuotaExceeded,
                format!("`{owner}` has {count} snapshots, which is the maximum"),
            )
            .hint("remove one: DELETE /templates/{name}"));
        }
        let snapshot = Snapshot {
            name: name.to_owned(),
            owner: owner.clone(),
            alias: label.map(str::to_owned),
            sandbox_id: Some(sandbox.id.clone()),
            created_ms: self.clock().now_ms(),
            is_public: false,
        };
        if !is_taken && self.store().insert_snapshot(location, &snapshot).await? {
            return Ok((snapshot.name, true));
        }
        // An earlier attempt left a row without a template, because its template might still have been made. This attempt reuses the
        // template's name, so that whatever the earlier one still makes has an owner.
        let is_same = |row: &&Snapshot| {
            row.owner == *owner
                && (row.name == name || (label.is_some() && row.alias == snapshot.alias))
        };
        if let Some(earlier) = all.iter().find(is_same)
            && !is_listed(provider, &earlier.name).await?
        {
            return Ok((earlier.name.clone(), false));
        }
        Err(
            ServiceError::conflict(format!("a template `{requested_name}` already exists"))
                .hint("choose another name, or delete that template"),
        )
    }
}

/// Says whether a provider has a template. A provider that does not list its templates may have it.
async fn is_listed(provider: &Arc<dyn Provider>, name: &str) -> Result<bool> {
    if !provider.info().capabilities.can_manage_templates {
        return Ok(true);
    }
    let templates = provider.templates().await?;
    Ok(templates.iter().any(|template| template.name == name))
}

/// A random name for a provider's template.
fn random_name() -> Result<String> {
    Ok(format!("{PREFIX}{}", random::id()?))
}

/// Says whether a name means a provider's template. The name may omit the template's tag.
fn is_same_template(template: &str, name: &str) -> bool {
    // A colon before the last slash belongs to a port.
    let bare = match template.rsplit_once(':') {
        Some((bare, tag)) if !tag.contains('/') => bare,
        _ => template,
    };
    let latest = name.strip_suffix(":latest");
    !template.is_empty() && (name == template || name == bare || latest == Some(template))
}

/// The error for an operation that a provider does not support.
pub(super) fn unsupported(operation: &str, provider: &str) -> ServiceError {
    ServiceError::new(
        ErrorKind::Unsupported,
        format!("the provider `{provider}` cannot {operation} a sandbox"),
    )
    .hint("GET /health lists the capabilities of each provider")
}

/// Fails for a name that does not fit into a path or a line of text.
fn check_alias(alias: &str) -> Result<()> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    if (1..=MAX_ALIAS).contains(&alias.len()) && alias.bytes().all(is_good) {
        return Ok(());
    }
    Err(ServiceError::invalid(
        "name",
        format!("the name of a snapshot must have 1 to {MAX_ALIAS} letters, digits and `-_./:`"),
    ))
}
