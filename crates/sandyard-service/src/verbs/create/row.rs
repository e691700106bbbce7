//! A new sandbox's row, and what follows from it.

use std::time::Duration;

use sandyard_core::{Limits, SandboxStatus};
use sandyard_provider::{InstanceSpec, Mount, ProviderInfo};
use sandyard_store::model::{Expiry, MountedVolume, Sandbox, TimeoutAction};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::choose::is_default;
use super::fall_back::{Asked, Fit};
use crate::error::{ServiceError, ServiceResult};
use crate::policy;
use crate::random;
use crate::request::{CreateRequest, LimitsRequest};
use crate::service::Service;

impl Service {
    /// The row of a sandbox on its way, with the provider that is asked first.
    pub(super) fn new_row(&self, asked: Asked<'_>, fit: &Fit) -> ServiceResult<Sandbox> {
        let (request, info) = (asked.request, fit.provider.info());
        let id = random::id()?;
        let network = match request.network.clone() {
            Some(mut policy) => {
                policy::seal(self.sealer(), &id, &mut policy)?;
                Some(policy::write(&policy)?)
            }
            None => None,
        };
        let now_ms = self.clock().now_ms();
        Ok(Sandbox {
            id,
            owner: asked.owner.to_owned(),
            alias: request.alias.clone(),
            project: request.project.clone(),
            provider: info.name.clone(),
            location: info.location.clone(),
            provider_id: None,
            template: fit.template.clone(),
            status: SandboxStatus::Creating,
            reason: None,
            limits: fit.limits.clone(),
            metadata: request.metadata.clone(),
            env: request.env.clone(),
            network,
            secrets: request.secrets.clone(),
            ports: request.ports.clone(),
            public_ports: Vec::new(),
            mounts: Vec::new(),
            access_token: random::secret()?,
            timeout_s: self.timeout_s(request.timeout)?,
            timeout_action: request.timeout_action.unwrap_or(TimeoutAction::Pause),
            expiry: request.expiry.unwrap_or(Expiry::Idle),
            is_auto_resumed: request.is_auto_resumed.unwrap_or(true),
            lacks: Vec::new(),
            created_ms: now_ms,
            started_ms: None,
            stopped_ms: None,
            last_activity_ms: now_ms,
            fixed_end_ms: None,
            deleted_ms: None,
            version: 1,
            claim: None,
        })
    }

    /// What to ask a provider for, so that it makes what a row says; for somebody without rights, which only a create adds.
    pub(in crate::verbs) fn spec_of(&self, row: &Sandbox) -> ServiceResult<InstanceSpec> {
        let mut network = self.policy_of(row)?;
        // Their values are for the grant alone: what is asked for here may travel to another node.
        network.rules.clear();
        Ok(InstanceSpec {
            sandbox_id: row.id.clone(),
            template: row.template.clone(),
            limits: row.limits.clone(),
            env: row.env.clone(),
            access_token: row.access_token.clone(),
            hostname: None,
            network,
            mounts: row.mounts.iter().map(mount).collect(),
            project: None,
            metadata: row.metadata.clone(),
            is_restricted: true,
        })
    }

    /// Tells a repetition from another request with the same key.
    pub(super) fn fingerprint(
        &self,
        row: &Sandbox,
        request: &CreateRequest,
    ) -> ServiceResult<String> {
        let mut network = request.network.clone();
        if let Some(policy) = &mut network {
            policy::map_values(policy, |_, header, value| {
                Ok(self.sealer().mark(header, value))
            })?;
        }
        let template = request.template.as_deref().filter(|text| !is_default(text));
        let limits = &request.limits;
        // As it was asked for: what becomes of it may be another provider's default the next time.
        let mut meaning = vec![json!([
            row.owner,
            template,
            request.alias,
            request.project,
            row.timeout_s,
            row.timeout_action,
            row.expiry,
            request.metadata,
            request.env,
            [limits.memory_bytes, limits.disk_bytes],
            [limits.cpu_millis, limits.pids],
            network,
            request.secrets,
            request.ports,
            row.mounts,
        ])];
        meaning.extend(request.provider.as_ref().map(|name| json!(name)));
        let digest = Sha256::digest(json!(meaning).to_string().as_bytes());
        Ok(sandyard_core::random::hex(&digest))
    }

    /// Checks a time-out and turns it into seconds.
    pub(crate) fn timeout_s(&self, asked: Option<Duration>) -> ServiceResult<i64> {
        let settings = self.settings();
        let timeout = asked.unwrap_or(settings.default_timeout);
        let most = settings.max_timeout;
        if timeout < Duration::from_secs(1) || timeout > most {
            return Err(ServiceError::invalid(
                "timeout",
                format!(
                    "a time-out of {} s is out of range: allowed is 1 to {} s",
                    timeout.as_secs(),
                    most.as_secs()
                ),
            ));
        }
        Ok(i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX))
    }
}

/// What a sandbox gets: what was asked for, else the provider's default; never more than it allows.
pub(super) fn limits(asked: &LimitsRequest, info: &ProviderInfo) -> ServiceResult<Limits> {
    let (default, most) = (&info.default_limits, &info.max_limits);
    let limits = Limits {
        memory_bytes: asked.memory_bytes.unwrap_or(default.memory_bytes),
        cpu_millis: asked.cpu_millis.unwrap_or(default.cpu_millis),
        pids: asked.pids.unwrap_or(default.pids),
        disk_bytes: asked.disk_bytes.unwrap_or(default.disk_bytes),
    };
    limits
        .check(most)
        .map_err(|error| ServiceError::invalid("limits", error.to_string()))?;
    Ok(limits)
}

fn mount(mounted: &MountedVolume) -> Mount {
    Mount {
        volume: mounted.volume_id.clone(),
        path: mounted.path.clone(),
    }
}
