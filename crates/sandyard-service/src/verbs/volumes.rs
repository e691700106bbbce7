//! Volumes: folders that outlive sandboxes.
//!
//! ```text
//!  create:  row `creating` ──▶ made at the provider ──▶ row `ready`
//!  delete:  row `deleting` ──▶ gone at the provider ──▶ no row
//! ```
//!
//! So every volume at a provider has a row, and a row that is not `ready` says what is unfinished. The reconciler finishes `deleting` rows,
//! and deletes `creating` rows that are too old to be in progress: no client has got an answer for those.

use std::sync::Arc;
use std::time::Duration;

use sandyard_agent_client::AgentClient;
use sandyard_core::bounds::MAX_VOLUME_NAME;
use sandyard_core::{Caller, ErrorKind, SandboxId};
use sandyard_provider::{Provider, VolumeSpec};
use sandyard_store::model::{Volume, VolumeInsert, VolumeRemoval, VolumeStatus};

use crate::error::{Result, ServiceError, printable};
use crate::random;
use crate::service::Service;
use sandyard_core::clock::millis;

/// Most volumes of one user.
const MAX_VOLUMES: i64 = 100;
/// How long a provider may take to create a volume.
const CREATE_WITHIN: Duration = Duration::from_secs(60);
/// The age at which an unfinished create is no longer in progress.
const INTERRUPTED_AFTER: Duration = Duration::from_secs(120);

/// The prefix of volume tokens, which tells them from other credentials.
pub const VOLUME_TOKEN_PREFIX: &str = "vol_";

impl Service {
    /// Lists the caller's volumes by name. An admin may name another owner.
    pub async fn volumes(&self, caller: &Caller, owner: Option<&str>) -> Result<Vec<Volume>> {
        let owner = owner.filter(|_| caller.is_admin());
        let mut volumes = self
            .store()
            .volumes(Some(owner.unwrap_or(&caller.name)))
            .await?;
        volumes.retain(|volume| volume.status == VolumeStatus::Ready);
        Ok(volumes)
    }

    /// Says whether an owner has volumes, including unfinished ones.
    pub async fn has_volumes(&self, owner: &str) -> Result<bool> {
        Ok(!self.store().volumes(Some(owner)).await?.is_empty())
    }

    /// Finds a volume of the caller by id or name. An admin finds any volume by id.
    pub async fn volume(&self, caller: &Caller, name: &str) -> Result<Volume> {
        let volume = self.find_volume(caller, name).await?;
        match volume.status {
            VolumeStatus::Ready => Ok(volume),
            VolumeStatus::Creating | VolumeStatus::Deleting => Err(no_volume(name)),
        }
    }

    /// Finds the volume that a token gives access to, for any caller.
    pub async fn volume_opened_by(&self, id: &str, token: &str) -> Result<Volume> {
        let volume = self.store().volume(id).await?;
        let volume = volume
            .filter(|volume| volume.status == VolumeStatus::Ready)
            .ok_or_else(|| no_volume(id))?;
        if !is_same(volume.token.as_bytes(), token.as_bytes()) {
            let message = "the token does not belong to this volume";
            return Err(ServiceError::new(ErrorKind::Unauthenticated, message));
        }
        // As with keys: credentials of a disabled user are invalid. Owners need not be users.
        let owner = self.store().user(&volume.owner).await?;
        if owner.is_some_and(|owner| owner.is_disabled) {
            let message = "the owner of this volume is disabled";
            return Err(ServiceError::new(ErrorKind::Unauthenticated, message));
        }
        Ok(volume)
    }

    /// Creates an empty volume of the caller.
    pub async fn create_volume(&self, caller: &Caller, name: &str) -> Result<Volume> {
        check_name(name)?;
        let provider = self.default_provider_for(caller, self.registry().default().clone())?;
        let volume = Volume {
            id: random::id()?.to_string(),
            owner: caller.name.clone(),
            name: name.to_owned(),
            location: provider.info().location.clone(),
            status: VolumeStatus::Creating,
            size_bytes: i64::try_from(self.settings().volume_size_bytes).unwrap_or(i64::MAX),
            token: format!("{VOLUME_TOKEN_PREFIX}{}", random::secret()?),
            created_ms: self.clock().now_ms(),
        };
        let quota = (!caller.is_admin()).then_some(MAX_VOLUMES);
        let service = self.clone();
        self.detached(async move { service.create_volume_now(provider, volume, quota).await })
            .await
    }

    /// Deletes a volume of the caller with its files. Fails while a sandbox has it.
    pub async fn delete_volume(&self, caller: &Caller, name: &str) -> Result<()> {
        // A volume whose delete failed can be deleted again.
        let volume = self.find_volume(caller, name).await?;
        if volume.status == VolumeStatus::Creating {
            return Err(no_volume(name));
        }
        let service = self.clone();
        self.detached(async move { service.remove_volume(&volume).await })
            .await
    }

    /// Opens a volume of the caller: an agent that sees it at `sandyard_provider::VOLUME_PATH`.
    pub async fn open_volume(&self, caller: &Caller, name: &str) -> Result<AgentClient> {
        let volume = self.volume(caller, name).await?;
        let provider = self.registry().provider(&volume.location).await?;
        Ok(provider.open_volume(&volume.id).await?)
    }

    async fn find_volume(&self, caller: &Caller, name: &str) -> Result<Volume> {
        if name.is_empty() || name.len() > MAX_VOLUME_NAME || name.contains('\0') {
            return Err(no_volume(name));
        }
        if let Some(volume) = self.store().volume(name).await?
            && caller.can_access(&volume.owner)
        {
            return Ok(volume);
        }
        let named = self.store().volume_named(&caller.name, name).await?;
        named.ok_or_else(|| no_volume(name))
    }

    async fn create_volume_now(
        &self,
        provider: Arc<dyn Provider>,
        mut volume: Volume,
        quota: Option<i64>,
    ) -> Result<Volume> {
        check_can_mount(&provider)?;
        match self.store().insert_volume(&volume, quota).await? {
            VolumeInsert::Inserted => {}
            VolumeInsert::NameTaken => return Err(self.name_taken(&volume).await?),
            VolumeInsert::OverQuota { count } => {
                return Err(ServiceError::new(
                    ErrorKind::QuotaExceeded,
                    format!(
                        "`{}` has {count} volumes, which is the maximum",
                        volume.owner
                    ),
                )
                .hint("delete one you do not need"));
            }
        }
        let error = match self.create_at_provider(&provider, &volume).await {
            Ok(()) => {
                volume.status = VolumeStatus::Ready;
                return Ok(volume);
            }
            Err(error) => error,
        };
        if let Err(error) = self.remove_volume(&volume).await {
            tracing::warn!(%error, volume.id, "Failed to remove a volume whose create failed; the reconciler removes it");
        }
        Err(error)
    }

    /// The error for a name that another volume has. The name of an unfinished volume is free again soon.
    async fn name_taken(&self, volume: &Volume) -> Result<ServiceError> {
        let name = &volume.name;
        let other = self.store().volume_named(&volume.owner, name).await?;
        let is_ready = other.is_none_or(|other| other.status == VolumeStatus::Ready);
        let error = if is_ready {
            let message = format!("a volume `{name}` already exists");
            ServiceError::conflict(message)
        } else {
            let message = format!("a volume `{name}` is being created or deleted");
            ServiceError::busy(message).hint("try again in a minute")
        };
        Ok(error.field("name"))
    }

    async fn create_at_provider(
        &self,
        provider: &Arc<dyn Provider>,
        volume: &Volume,
    ) -> Result<()> {
        let spec = VolumeSpec {
            id: volume.id.clone(),
            size_bytes: u64::try_from(volume.size_bytes).unwrap_or_default(),
        };
        let too_late = || ServiceError::timed_out("creating the volume took too long");
        match tokio::time::timeout(CREATE_WITHIN, provider.create_volume(&spec)).await {
            Ok(created) => created?,
            Err(_) => return Err(too_late()),
        }
        match self.store().finish_volume(&volume.id).await? {
            true => Ok(()),
            false => Err(too_late()),
        }
    }

    /// Deletes a volume, for any caller.
    async fn remove_volume(&self, volume: &Volume) -> Result<()> {
        match self.store().begin_volume_removal(&volume.id).await? {
            VolumeRemoval::Started => {}
            VolumeRemoval::InUse(sandboxes) => return Err(in_use(volume, &sandboxes)),
            VolumeRemoval::Missing => return Err(no_volume(&volume.name)),
        }
        let provider = self.registry().provider(&volume.location).await?;
        provider.delete_volume(&volume.id).await?;
        Ok(self.store().forget_volume(&volume.id).await?)
    }

    /// Removes the volumes of a location whose create or delete was interrupted.
    pub(crate) async fn finish_interrupted_volumes(&self, location: &str) -> Result<()> {
        let mut before_ms = self.clock().now_ms() - millis(INTERRUPTED_AFTER);
        if !self.has_peers() {
            // What was begun before this server's start was begun by a dead server.
            before_ms = before_ms.max(self.started_ms());
        }
        let unfinished = self.store().unfinished_volumes(location, before_ms).await?;
        for volume in unfinished {
            match self.remove_volume(&volume).await {
                Ok(()) => tracing::info!(volume.id, "Removed an unfinished volume"),
                Err(error) => {
                    tracing::warn!(%error, volume.id, "Failed to remove an unfinished volume; trying again later");
                }
            }
        }
        Ok(())
    }
}

/// Fails if a provider has no volumes.
pub(super) fn check_can_mount(provider: &Arc<dyn Provider>) -> Result<()> {
    let info = provider.info();
    if info.capabilities.can_mount {
        return Ok(());
    }
    Err(ServiceError::new(
        ErrorKind::Unsupported,
        format!("the provider `{}` does not support volumes", info.name),
    ))
}

/// The volume does not exist, or the caller may not see it. The two look the same.
pub(super) fn no_volume(name: &str) -> ServiceError {
    ServiceError::new(
        ErrorKind::NotFound,
        format!("no volume `{}`", printable(name)),
    )
    .hint("GET /volumes lists yours")
}

fn in_use(volume: &Volume, sandboxes: &[SandboxId]) -> ServiceError {
    let names: Vec<_> = sandboxes.iter().map(|id| format!("`{id}`")).collect();
    ServiceError::conflict(format!(
        "volume `{}` is in use by {}",
        volume.name,
        names.join(", ")
    ))
    .hint("delete these sandboxes first; paused ones keep their volumes")
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let has_valid_start = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if has_valid_start && name.len() <= MAX_VOLUME_NAME && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(ServiceError::invalid(
        "name",
        format!(
            "the name of a volume must have 1 to {MAX_VOLUME_NAME} letters, digits, `-`, `_` and `.`, and must not begin with `-` or `.`"
        ),
    ))
}

/// Compares in constant time.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b));
    left.len() == right.len() && differences == 0
}
