//! Creates a sandbox.

use std::collections::BTreeMap;

use sandyard_core::bounds::{MAX_ALIAS, MAX_TEMPLATE};
use sandyard_service::{CreateRequest, MountRequest, PartialLimits};
use serde_json::Value;

use crate::audit;
use crate::bounds::{CpuLimit, LifeSeconds, MemoryLimit, MetadataValue};
use crate::extract::IdempotencyKey;
use crate::model::network::{self, NetworkRequest, PolicyDefaults};
use crate::model::sandbox::{SandboxReply, TimeoutActionWord};
use crate::prelude::*;

/// Request to create a sandbox. Every field is optional.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateSandbox {
    /// Owner of the sandbox. Only an admin may name another user; for other callers the field is ignored. The user need
    /// not have an account. Default: the caller.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f]+$"
    )]
    user_id: Option<String>,
    /// Provider that runs the sandbox, for example `embedded` or `docker` (see `GET /info`). Default: the provider that
    /// holds the requested volumes or snapshot, else the operator's choice for the template, else the default provider.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9-]+$")]
    provider: Option<String>,
    /// Template or snapshot to start from. Default: the provider's default template. If `provider` is omitted, a
    /// provider name may be put in front: `docker/python:3.12`.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    template_id: Option<String>,
    /// Alias of `template_id`.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$", deprecated)]
    sandbox_template_id: Option<String>,
    /// Alias of `template_id`.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$", deprecated)]
    template: Option<String>,
    /// Idle timeout in seconds.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout: Option<LifeSeconds>,
    /// What happens when the idle timeout is over: `pause` (default) or `delete`.
    timeout_action: Option<TimeoutActionWord>,
    /// Labels chosen by the caller.
    #[schema(schema_with = bounds::metadata_schema)]
    metadata: Option<BTreeMap<String, MetadataValue>>,
    /// Environment variables of every command.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    /// Memory limit.
    #[serde(alias = "memory")]
    #[schema(schema_with = bounds::memory_limit_schema)]
    memory_limit: Option<MemoryLimit>,
    /// CPU limit in cores.
    #[serde(alias = "cpu", alias = "cpus")]
    #[schema(schema_with = bounds::cpu_limit_schema)]
    cpu_limit: Option<CpuLimit>,
    /// Egress policy: which hosts the sandbox may reach. Default: the operator's policy.
    #[schema(value_type = Option<NetworkRequest>)]
    network: Option<Value>,
    /// Whether the sandbox may reach hosts that no entry of `network` names. Same as `network.allow_internet_access`.
    allow_internet_access: Option<bool>,
    /// Environment variables that stand for secrets.
    #[schema(schema_with = bounds::secrets_schema)]
    secrets: Option<BTreeMap<String, String>>,
    /// Volumes to mount.
    #[schema(schema_with = bounds::volumes_schema)]
    volumes: Option<BTreeMap<String, String>>,
    /// Disk space that the sandbox may write.
    #[serde(alias = "disk")]
    #[schema(schema_with = bounds::disk_limit_schema)]
    disk_limit: Option<String>,
    /// Maximum number of processes and threads.
    #[schema(schema_with = bounds::pids_schema)]
    pids_limit: Option<BoundedInt<8, 65_536>>,
    /// Second name for the sandbox, usable wherever its ID is. Unique among the owner's sandboxes.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    alias: Option<String>,
    /// Alias of `alias`.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    name: Option<String>,
    /// Whether a request wakes the sandbox when it is paused (default true).
    auto_resume: Option<bool>,
}

impl CreateSandbox {
    fn into_request(
        self,
        key: IdempotencyKey,
        defaults: PolicyDefaults,
    ) -> ApiResult<CreateRequest> {
        let template = self
            .template_id
            .or(self.sandbox_template_id)
            .or(self.template);
        bounds::optional_text("template_id", template.as_deref(), 1, MAX_TEMPLATE)?;
        bounds::provider(self.provider.as_deref())?;
        let alias = self.alias.or(self.name);
        check_alias(alias.as_deref())?;
        let env = self.env.unwrap_or_default();
        bounds::env("env", &env)?;
        if template
            .as_deref()
            .is_some_and(|it| !it.bytes().all(|b| b.is_ascii_graphic()))
        {
            let problem = "`template_id` must consist of visible ASCII characters";
            return Err(ServiceError::invalid("template_id", problem).into());
        }
        let secrets = self.secrets.unwrap_or_default();
        bounds::secrets("secrets", &secrets)?;
        let volumes = self.volumes.unwrap_or_default();
        bounds::volumes("volumes", &volumes)?;
        let mount = |(path, volume)| MountRequest { volume, path };
        Ok(CreateRequest {
            owner: self.user_id,
            provider: self.provider,
            template,
            alias,
            timeout: self.timeout.map(LifeSeconds::as_duration),
            timeout_action: self.timeout_action.map(Into::into),
            metadata: bounds::metadata("metadata", self.metadata.unwrap_or_default())?,
            env,
            limits: PartialLimits {
                memory_bytes: self.memory_limit.map(|it| it.bytes()).transpose()?,
                cpu_millis: self.cpu_limit.map(|it| it.millis()).transpose()?,
                disk_bytes: self
                    .disk_limit
                    .map(|it| bounds::disk_bytes(&it))
                    .transpose()?,
                pids: self.pids_limit.map(|it| it.0 as u32),
            },
            network: network::parse_with_access(
                self.network,
                self.allow_internet_access,
                defaults,
            )?,
            secrets,
            mounts: volumes.into_iter().map(mount).collect(),
            is_auto_resumed: self.auto_resume,
            idempotency_key: key.key,
            ..CreateRequest::default()
        })
    }
}

/// Creates the sandbox and describes it.
pub(crate) async fn create_sandbox(
    call: &Call,
    key: IdempotencyKey,
    request: CreateSandbox,
) -> ApiResult<SandboxReply> {
    let request = request.into_request(key, PolicyDefaults::from(&call.app))?;
    let sandbox = call.service().create(&call.caller, request).await?;
    audit::note_sandbox(sandbox.id.as_str());
    Ok(SandboxReply::new(&sandbox, call, "Sandbox created"))
}

/// Checks the form of an alias.
pub(crate) fn check_alias(name: Option<&str>) -> ServiceResult<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_good = |name: &str| {
        (1..=MAX_ALIAS).contains(&name.len())
            && is_plain(name.as_bytes()[0])
            && name.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    match name {
        Some(name) if !is_good(name) => Err(ServiceError::invalid(
            "alias",
            format!(
                "`alias` must have 1 to {MAX_ALIAS} lower-case letters, digits and dashes, and must not begin with a dash"
            ),
        )),
        _ => Ok(()),
    }
}
