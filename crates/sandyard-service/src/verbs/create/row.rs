//! The row of a new sandbox, and what follows from it.

use std::time::Duration;

use sandyard_core::SandboxStatus;
use sandyard_core::time_span::readable;
use sandyard_provider::{InstanceSpec, Mount};
use sandyard_store::model::{Expiry, MountedVolume, Sandbox, TimeoutAction};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::placement::{CreateContext, Placement};
use super::template_name::is_default;
use crate::error::{Result, ServiceError};
use crate::policy;
use crate::random;
use crate::request::CreateRequest;
use crate::service::Service;

/// Variable by which the agent of a sandbox knows the directory in which everything starts.
const WORKDIR_VARIABLE: &str = "SANDYARD_WORKDIR";

impl Service {
    /// The row of a new sandbox at the provider that is tried first.
    pub(super) fn new_row(
        &self,
        context: CreateContext<'_>,
        placement: &Placement,
    ) -> Result<Sandbox> {
        let (request, info) = (context.request, placement.provider.info());
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
            owner: context.owner.to_owned(),
            alias: request.alias.clone(),
            project: request.project.clone(),
            provider: info.name.clone(),
            location: info.location.clone(),
            provider_id: None,
            template: placement.template.clone(),
            status: SandboxStatus::Creating,
            reason: None,
            limits: placement.limits.clone(),
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
            limitations: Vec::new(),
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

    /// The instance that a provider should make for a row. Its rights are the lowest; a create adds those of its caller.
    pub(in crate::verbs) fn spec_of(&self, row: &Sandbox) -> Result<InstanceSpec> {
        let mut network = self.policy_of(row)?;
        // Header values are only for the grant: this spec may be sent to another node.
        network.rules.clear();
        let mut env = row.env.clone();
        if let Some(workdir) = &self.settings().workdir {
            env.entry(WORKDIR_VARIABLE.to_owned())
                .or_insert_with(|| workdir.clone());
        }
        Ok(InstanceSpec {
            sandbox_id: row.id.clone(),
            template: row.template.clone(),
            limits: row.limits.clone(),
            env,
            access_token: row.access_token.clone(),
            hostname: None,
            network,
            mounts: row.mounts.iter().map(mount).collect(),
            project: None,
            metadata: row.metadata.clone(),
            is_restricted: true,
        })
    }

    /// A digest of the request, which tells a repetition from another request with the same key.
    pub(super) fn fingerprint(&self, row: &Sandbox, request: &CreateRequest) -> Result<String> {
        let mut network = request.network.clone();
        if let Some(policy) = &mut network {
            policy::map_values(policy, |_, header, value| {
                Ok(self.sealer().mark(header, value))
            })?;
        }
        let template = request.template.as_deref().filter(|text| !is_default(text));
        let limits = &request.limits;
        // Of the request, not of its result: a repetition may get other defaults.
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

    /// Checks a time-out and converts it to seconds.
    pub(crate) fn timeout_s(&self, requested: Option<Duration>) -> Result<i64> {
        let settings = self.settings();
        let timeout = requested.unwrap_or(settings.default_timeout);
        let max = settings.max_timeout;
        if timeout < Duration::from_secs(1) || timeout > max {
            return Err(ServiceError::invalid(
                "timeout",
                format!(
                    "`timeout` must be between 1s and {} (got {})",
                    readable(max.as_secs()),
                    readable(timeout.as_secs())
                ),
            ));
        }
        Ok(i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX))
    }
}

fn mount(mounted: &MountedVolume) -> Mount {
    Mount {
        volume: mounted.volume_id.clone(),
        path: mounted.path.clone(),
    }
}
