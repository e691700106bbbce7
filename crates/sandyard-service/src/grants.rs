//! Pushes network grants, built from the rows, to the providers that enforce them.
//!
//! A grant is pushed when its sandbox is created, started or changed, and when one of its secrets changes. A background pass pushes what
//! failed and what other servers changed: it compares what this process has pushed with the rows. Pushes for one sandbox are queued, and
//! each reads the row when it begins, so that the last push is never an older one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use sandyard_core::network::{NetworkGrant, NetworkPolicy, SecretGrant};
use sandyard_core::{ErrorKind, SandboxId, SandboxStatus};
use sandyard_provider::Provider;
use sandyard_store::model::{Operation, Sandbox, SandboxFilter, SandboxPatch, Secret, TimerPlan};
use sha2::{Digest, Sha256};

use crate::error::{Result, ServiceError};
use crate::policy;
use crate::service::Service;
use crate::state::provider_registry::location_of;
use crate::state::pushed_grants::GrantDigest;

/// Most pushes at the same time.
const MAX_CONCURRENT: usize = 32;
/// How long one push may take.
const PUSH_WITHIN: Duration = Duration::from_secs(30);

impl Service {
    /// Pushes a sandbox's grant in the background, so that a create or start does not wait for it.
    pub(crate) fn push_grant_soon(&self, id: &SandboxId) {
        let (service, id) = (self.clone(), id.clone());
        self.tasks()
            .spawn(async move { service.try_push_grant(&id, true).await });
    }

    /// Pushes a sandbox's grant from its current row. Returns what the provider cannot enforce. A sandbox without processes gets its
    /// grant when it starts.
    pub(crate) async fn push_grant(&self, id: &SandboxId, is_leading: bool) -> Result<Vec<String>> {
        let _lock = self.grants().lock(id).await;
        self.grants().forget(id);
        let row = self.store().sandbox(id).await?;
        let Some(row) = row.filter(is_live) else {
            return Ok(Vec::new());
        };
        let Some(instance) = row.provider_id.clone() else {
            return Ok(Vec::new());
        };
        let local = self.registry().local_for(&row.location).cloned();
        let provider = match &local {
            Some(provider) => provider.clone(),
            None => self.registry().provider_of(&row).await?,
        };
        let (digest, grant) = if local.is_some() {
            let secrets = match row.secrets.is_empty() {
                true => Vec::new(),
                false => self.store().secrets_for(&row.owner).await?,
            };
            let secrets = SecretSet::new(&secrets);
            let grant = self.grant_of(&row, &secrets, is_leading)?;
            (Some(digest_of(&row, &secrets)), grant)
        } else {
            // The other node reads row and secrets itself, so that secrets are never sent between servers.
            (None, empty_grant(&row, is_leading))
        };
        let pushing = provider.set_network(&instance, &grant);
        let limitations = tokio::time::timeout(PUSH_WITHIN, pushing)
            .await
            .map_err(|_| {
                ServiceError::timed_out("updating the egress policy of a sandbox took too long")
            })??;
        if let Some(digest) = digest {
            self.grants().insert(id, &row.location, digest);
        }
        Ok(limitations)
    }

    /// Pushes the grants of all sandboxes that may use a secret, of one owner or of all.
    pub(crate) async fn push_grants_of_secret(
        &self,
        name: &str,
        owner: Option<&str>,
    ) -> Result<()> {
        let rows = self
            .all_rows(SandboxFilter {
                owner: owner.map(str::to_owned),
                secret: Some(name.to_owned()),
                statuses: vec![SandboxStatus::Running, SandboxStatus::Paused],
                ..SandboxFilter::default()
            })
            .await?;
        // Each location on its own: one that does not answer must not delay the others.
        let mut by_location: HashMap<&str, Vec<&SandboxId>> = HashMap::new();
        for row in &rows {
            by_location.entry(&row.location).or_default().push(&row.id);
        }
        let locations = by_location.into_values();
        join_all(locations.map(|ids| self.push_many(ids, true))).await;
        Ok(())
    }

    /// Pushes the grants that this process has not pushed yet to one of this node's providers.
    pub(crate) async fn refresh_grants(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        match self.refresh_grants_now(location).await {
            Ok(0) => {}
            Ok(count) => tracing::debug!(count, location, "Pushed egress policies"),
            Err(error) => {
                tracing::warn!(%error, location, "Failed to check egress policies; trying again later");
            }
        }
    }

    async fn refresh_grants_now(&self, location: &str) -> Result<usize> {
        let live = SandboxFilter {
            location: Some(location.to_owned()),
            statuses: vec![SandboxStatus::Running, SandboxStatus::Paused],
            ..SandboxFilter::default()
        };
        let rows = self.all_rows(live).await?;
        let secrets = match rows.iter().all(|row| row.secrets.is_empty()) {
            true => Vec::new(),
            false => self.store().all_secrets().await?,
        };
        let secrets = SecretSet::new(&secrets);
        let present: HashSet<&SandboxId> = rows.iter().map(|row| &row.id).collect();
        self.grants().retain(location, &present);
        let now_ms = self.clock().now_ms();
        let due: Vec<&SandboxId> = rows
            .iter()
            .filter(|row| !is_changing(row, now_ms))
            .filter(|row| !self.grants().has(&row.id, &digest_of(row, &secrets)))
            .map(|row| &row.id)
            .collect();
        let count = due.len();
        self.push_many(due, false).await;
        Ok(count)
    }

    async fn push_many(&self, ids: Vec<&SandboxId>, is_leading: bool) {
        stream::iter(ids)
            .for_each_concurrent(MAX_CONCURRENT, |id| self.try_push_grant(id, is_leading))
            .await;
    }

    /// Pushes a grant and records what cannot be enforced. The next background pass repeats a push that fails.
    async fn try_push_grant(&self, id: &SandboxId, is_leading: bool) {
        let done = match self.push_grant(id, is_leading).await {
            Ok(limitations) => self.record_limitations(id, limitations).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {
                tracing::debug!(sandbox.id = %id, %error, "A sandbox was deleted before its egress policy was pushed");
            }
            Err(error) => {
                tracing::warn!(sandbox.id = %id, %error, "Failed to push the egress policy of a sandbox; trying again later");
            }
        }
    }

    /// Records in the row what the provider cannot enforce of a requested policy.
    async fn record_limitations(&self, id: &SandboxId, limitations: Vec<String>) -> Result<()> {
        let has_new = |row: &Sandbox| !new_limitations(row, &limitations).is_empty();
        if limitations.is_empty()
            || !self
                .store()
                .sandbox(id)
                .await?
                .is_some_and(|row| has_new(&row))
        {
            return Ok(());
        }
        let claim = self.claim(id, Operation::Change).await?;
        let patch = limitations_patch(&claim.row, &limitations);
        claim.commit(patch, Vec::new(), TimerPlan::Keep).await?;
        Ok(())
    }

    /// Builds a row's grant, with all secrets in clear.
    fn grant_of(
        &self,
        row: &Sandbox,
        secrets: &SecretSet<'_>,
        is_leading: bool,
    ) -> Result<NetworkGrant> {
        let mut grant = empty_grant(row, is_leading);
        grant.policy = match policy::read(row.network.as_ref())? {
            Some(mut policy) => {
                policy::unseal(self.sealer(), &row.id, &mut policy)?;
                policy
            }
            None => self.settings().default_network.clone(),
        };
        for (variable, secret) in secrets.of(row) {
            // The sandbox keeps the placeholder it was created with, even if the secret has a new one.
            let placeholder = row.env.get(variable).unwrap_or(&secret.placeholder);
            let is_same = |granted: &SecretGrant| {
                granted.name == secret.name && granted.placeholder == *placeholder
            };
            if grant.secrets.iter().any(is_same) {
                continue;
            }
            let purpose = secret_purpose(&secret.owner, &secret.name);
            grant.secrets.push(SecretGrant {
                name: secret.name.clone(),
                placeholder: placeholder.clone(),
                value: self.sealer().unseal(&purpose, &secret.sealed)?,
                hosts: secret.hosts.clone(),
            });
        }
        Ok(grant)
    }
}

/// The purpose under which a secret's value is sealed.
pub(crate) fn secret_purpose(owner: &str, name: &str) -> String {
    format!("secret:{owner}/{name}")
}

/// The patch that adds new limitations to a row.
pub(crate) fn limitations_patch(row: &Sandbox, limitations: &[String]) -> SandboxPatch {
    let more = new_limitations(row, limitations);
    if !more.is_empty() {
        tracing::warn!(sandbox.id = %row.id, limitations = ?more, "The provider cannot enforce the whole egress policy");
    }
    SandboxPatch {
        limitations: (!more.is_empty()).then(|| [row.limitations.clone(), more].concat()),
        ..SandboxPatch::default()
    }
}

/// The limitations that a row does not have yet. A sandbox without a policy of its own has none.
fn new_limitations(row: &Sandbox, limitations: &[String]) -> Vec<String> {
    let is_new =
        |limitation: &&String| row.network.is_some() && !row.limitations.contains(*limitation);
    limitations.iter().filter(is_new).cloned().collect()
}

/// Secrets by name.
pub(crate) struct SecretSet<'s>(HashMap<&'s str, Vec<&'s Secret>>);

impl<'s> SecretSet<'s> {
    pub(crate) fn new(secrets: &'s [Secret]) -> Self {
        let mut by_name: HashMap<&str, Vec<&Secret>> = HashMap::new();
        for secret in secrets {
            by_name.entry(&secret.name).or_default().push(secret);
        }
        Self(by_name)
    }

    /// The secret that an owner means by a name: its own, else the oldest shared one.
    pub(crate) fn find(&self, owner: &str, name: &str) -> Option<&'s Secret> {
        let named = self.0.get(name)?;
        let own = named.iter().find(|secret| secret.owner == owner);
        own.or_else(|| named.iter().find(|secret| secret.is_shared))
            .copied()
    }

    /// The existing secrets that a row names, each with the variable that holds its placeholder.
    fn of<'r>(&self, row: &'r Sandbox) -> impl Iterator<Item = (&'r str, &'s Secret)> {
        row.secrets
            .iter()
            .filter_map(|(variable, name)| Some((variable.as_str(), self.find(&row.owner, name)?)))
    }
}

fn empty_grant(row: &Sandbox, is_leading: bool) -> NetworkGrant {
    NetworkGrant {
        sandbox_id: row.id.clone(),
        owner: row.owner.clone(),
        policy: NetworkPolicy::default(),
        secrets: Vec::new(),
        is_leading,
    }
}

/// The digest of everything that a grant depends on. Sealed values are not opened: sealing the same value again gives another text.
fn digest_of(row: &Sandbox, secrets: &SecretSet<'_>) -> GrantDigest {
    let network = row.network.as_ref().map(ToString::to_string);
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    };
    add(row.provider_id.as_deref().unwrap_or_default());
    add(&row.started_ms.unwrap_or_default().to_string());
    add(network.as_deref().unwrap_or_default());
    for (variable, secret) in secrets.of(row) {
        add(variable);
        add(&secret.owner);
        add(&secret.name);
        add(&secret.sealed);
        for host in &secret.hosts {
            add(&host.to_string());
        }
    }
    digest.finalize().into()
}

/// Says whether a sandbox has processes.
fn is_live(row: &Sandbox) -> bool {
    matches!(row.status, SandboxStatus::Running | SandboxStatus::Paused)
}

/// Says whether an operation is about to start or end the sandbox's processes. That operation pushes the grant.
fn is_changing(row: &Sandbox, now_ms: i64) -> bool {
    row.claim.as_ref().is_some_and(|(operation, _, until_ms)| {
        let is_quiet = matches!(
            operation,
            Operation::Change | Operation::Copy | Operation::Reconcile
        );
        *until_ms > now_ms && !is_quiet
    })
}
