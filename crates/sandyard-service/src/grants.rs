//! What each sandbox may reach, on its way from its row to whoever sees to it.
//!
//! A grant is pushed when a sandbox is made, started or changed, and when a secret of its is. What did not arrive, and what
//! other servers changed, the reconciler pushes: it compares what this process has pushed with what the rows say. Pushes for
//! one sandbox stand in line, and each reads the row when its turn comes, so that the last one is never an older one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use sandyard_core::network::{NetworkGrant, NetworkPolicy, SecretGrant};
use sandyard_core::{ErrorKind, SandboxId, SandboxStatus};
use sandyard_provider::Provider;
use sandyard_store::model::{Operation, Sandbox, SandboxFilter, SandboxPatch, Secret, TimerPlan};
use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;

use crate::error::{ServiceError, ServiceResult};
use crate::locks::Locks;
use crate::places::location_of;
use crate::policy;
use crate::service::Service;

/// Pushes under way at once when there are many.
const AT_ONCE: usize = 32;
/// How long one may take.
const PUSH_WITHIN: Duration = Duration::from_secs(30);

/// Tells one grant from another.
type Mark = [u8; 32];

/// What this process has pushed.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// By sandbox: the place it is in, and the mark of its grant.
    pushed: Mutex<HashMap<SandboxId, (String, Mark)>>,
    turns: Locks,
}

impl Grants {
    /// Forgets what was pushed for a sandbox: the next round pushes it again, if there is somebody to push to.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.pushed().remove(id);
    }

    async fn turn(&self, id: &SandboxId) -> OwnedMutexGuard<()> {
        self.turns.lock(id).await
    }

    fn has(&self, id: &SandboxId, mark: &Mark) -> bool {
        self.pushed()
            .get(id)
            .is_some_and(|(_, pushed)| pushed == mark)
    }

    fn pushed(&self) -> MutexGuard<'_, HashMap<SandboxId, (String, Mark)>> {
        self.pushed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Pushes a sandbox's grant in the background: whoever made or started the sandbox does not wait for it.
    pub(crate) fn push_grant_soon(&self, id: &SandboxId) {
        let (service, id) = (self.clone(), id.clone());
        self.tasks()
            .spawn(async move { service.try_push_grant(&id, true).await });
    }

    /// Pushes a sandbox's grant as its row has it now. Returns what of it cannot be enforced; a sandbox without processes
    /// gets its grant when it starts.
    pub(crate) async fn push_grant(
        &self,
        id: &SandboxId,
        is_leading: bool,
    ) -> ServiceResult<Vec<String>> {
        let _turn = self.grants().turn(id).await;
        self.grants().forget(id);
        let row = self.store().sandbox(id).await?;
        let Some(row) = row.filter(is_live) else {
            return Ok(Vec::new());
        };
        let Some(instance) = row.provider_id.clone() else {
            return Ok(Vec::new());
        };
        let local = self.places().local_for(&row.location).cloned();
        let provider = match &local {
            Some(provider) => provider.clone(),
            None => self.places().provider_of(&row).await?,
        };
        let (mark, grant) = if local.is_some() {
            let secrets = match row.secrets.is_empty() {
                true => Vec::new(),
                false => self.store().secrets_for(&row.owner).await?,
            };
            let secrets = SecretSet::new(&secrets);
            let grant = self.grant_of(&row, &secrets, is_leading)?;
            (Some(mark_of(&row, &secrets)), grant)
        } else {
            // The other node reads row and secrets itself: they do not travel between servers.
            (None, empty_grant(&row, is_leading))
        };
        let pushing = provider.set_network(&instance, &grant);
        let lacks = tokio::time::timeout(PUSH_WITHIN, pushing)
            .await
            .map_err(|_| {
                ServiceError::new(
                    ErrorKind::TimedOut,
                    "opening the way out of a sandbox took too long",
                )
            })??;
        if let Some(mark) = mark {
            let pushed = (row.location.clone(), mark);
            self.grants().pushed().insert(id.clone(), pushed);
        }
        Ok(lacks)
    }

    /// Pushes the grants of all sandboxes that may use a secret: of one owner, or of everybody.
    pub(crate) async fn push_grants_of_secret(
        &self,
        name: &str,
        owner: Option<&str>,
    ) -> ServiceResult<()> {
        let rows = self
            .all_rows(SandboxFilter {
                owner: owner.map(str::to_owned),
                secret: Some(name.to_owned()),
                statuses: vec![SandboxStatus::Running, SandboxStatus::Paused],
                ..SandboxFilter::default()
            })
            .await?;
        // Each place by itself: one that does not answer must not keep the others waiting.
        let mut by_place: HashMap<&str, Vec<&SandboxId>> = HashMap::new();
        for row in &rows {
            by_place.entry(&row.location).or_default().push(&row.id);
        }
        let places = by_place.into_values();
        join_all(places.map(|ids| self.push_many(ids, true))).await;
        Ok(())
    }

    /// Pushes what this process has not pushed yet, in one place this node reaches itself.
    pub(crate) async fn refresh_grants(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        match self.refresh_grants_now(location).await {
            Ok(0) => {}
            Ok(count) => tracing::debug!(count, location, "Opened ways out of sandboxes"),
            Err(error) => {
                tracing::warn!(%error, location, "Ways out of sandboxes could not be looked at; it is tried again");
            }
        }
    }

    async fn refresh_grants_now(&self, location: &str) -> ServiceResult<usize> {
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
        let there: HashSet<&SandboxId> = rows.iter().map(|row| &row.id).collect();
        self.grants()
            .pushed()
            .retain(|id, (place, _)| place != location || there.contains(id));
        let now_ms = self.clock().now_ms();
        let due: Vec<&SandboxId> = rows
            .iter()
            .filter(|row| !is_on_its_way(row, now_ms))
            .filter(|row| !self.grants().has(&row.id, &mark_of(row, &secrets)))
            .map(|row| &row.id)
            .collect();
        let count = due.len();
        self.push_many(due, false).await;
        Ok(count)
    }

    async fn push_many(&self, ids: Vec<&SandboxId>, is_leading: bool) {
        stream::iter(ids)
            .for_each_concurrent(AT_ONCE, |id| self.try_push_grant(id, is_leading))
            .await;
    }

    /// Pushes a grant and notes what cannot be enforced; what fails is left to the reconciler.
    async fn try_push_grant(&self, id: &SandboxId, is_leading: bool) {
        let done = match self.push_grant(id, is_leading).await {
            Ok(lacks) => self.note_lacks(id, lacks).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {
                tracing::debug!(sandbox.id = %id, %error, "A sandbox went before its way out was opened");
            }
            Err(error) => {
                tracing::warn!(sandbox.id = %id, %error, "The way out of a sandbox could not be opened; it is tried again");
            }
        }
    }

    /// Writes down what a place cannot enforce of a policy that somebody asked for.
    async fn note_lacks(&self, id: &SandboxId, lacks: Vec<String>) -> ServiceResult<()> {
        let is_news = |row: &Sandbox| !new_lacks(row, &lacks).is_empty();
        if lacks.is_empty()
            || !self
                .store()
                .sandbox(id)
                .await?
                .is_some_and(|row| is_news(&row))
        {
            return Ok(());
        }
        let claim = self.claim(id, Operation::Change).await?;
        let patch = lacks_patch(&claim.row, &lacks);
        claim.commit(patch, Vec::new(), TimerPlan::Keep).await?;
        Ok(())
    }

    /// The grant a row asks for, with everything in clear.
    fn grant_of(
        &self,
        row: &Sandbox,
        secrets: &SecretSet<'_>,
        is_leading: bool,
    ) -> ServiceResult<NetworkGrant> {
        let mut grant = empty_grant(row, is_leading);
        grant.policy = match policy::read(row.network.as_ref())? {
            Some(mut policy) => {
                policy::unseal(self.sealer(), &row.id, &mut policy)?;
                policy
            }
            None => self.settings().default_network.clone(),
        };
        for (variable, secret) in secrets.of(row) {
            // What the sandbox was given stays what it has, also when the secret has another placeholder by now.
            let placeholder = row.env.get(variable).unwrap_or(&secret.placeholder);
            let is_there = |known: &SecretGrant| {
                known.name == secret.name && known.placeholder == *placeholder
            };
            if grant.secrets.iter().any(is_there) {
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

/// What a secret's value is sealed for.
pub(crate) fn secret_purpose(owner: &str, name: &str) -> String {
    format!("secret:{owner}/{name}")
}

/// The change of a row that now lacks these too.
pub(crate) fn lacks_patch(row: &Sandbox, lacks: &[String]) -> SandboxPatch {
    let more = new_lacks(row, lacks);
    if !more.is_empty() {
        tracing::warn!(sandbox.id = %row.id, lacks = ?more, "A policy cannot be enforced in full");
    }
    SandboxPatch {
        lacks: (!more.is_empty()).then(|| [row.lacks.clone(), more].concat()),
        ..SandboxPatch::default()
    }
}

/// What a row does not say yet. Who asked for nothing lacks nothing.
fn new_lacks(row: &Sandbox, lacks: &[String]) -> Vec<String> {
    let is_new = |lack: &&String| row.network.is_some() && !row.lacks.contains(*lack);
    lacks.iter().filter(is_new).cloned().collect()
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

    /// The one that an owner means by a name: its own, else the oldest that is shared.
    pub(crate) fn find(&self, owner: &str, name: &str) -> Option<&'s Secret> {
        let named = self.0.get(name)?;
        let own = named.iter().find(|secret| secret.owner == owner);
        own.or_else(|| named.iter().find(|secret| secret.is_shared))
            .copied()
    }

    /// Those that a row names and that are still there, each with the variable that stands for it.
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

/// Of all that makes one grant another, without opening anything: a sealed text is another one whenever it is sealed.
fn mark_of(row: &Sandbox, secrets: &SecretSet<'_>) -> Mark {
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

/// Says whether somebody is about to start or end its processes, and pushes then, if need be.
fn is_on_its_way(row: &Sandbox, now_ms: i64) -> bool {
    row.claim.as_ref().is_some_and(|(operation, _, until_ms)| {
        let is_quiet = matches!(
            operation,
            Operation::Change | Operation::Copy | Operation::Reconcile
        );
        *until_ms > now_ms && !is_quiet
    })
}
