//! Creates a sandbox.

use std::collections::BTreeMap;

use sandyard_core::Caller;
use sandyard_service::{CreateRequest, MountRequest, PartialLimits, ServiceError};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::bounds::{self, CpuLimit, LifeSeconds, MemoryLimit, MetadataValue, Whole};
use crate::error::ApiError;
use crate::extract::IdempotencyKey;
use crate::links::Links;
use crate::model::network::{self, NetworkRequest, PolicyDefaults};
use crate::model::sandbox::{SandboxReply, TimeoutActionWord};

/// A sandbox to be made. All of it may be left out.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateSandbox {
    /// For whom; only an admin may name somebody else, an ordinary user's word is not looked at.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\u0000-\u001f\u007f]+$"
    )]
    user_id: Option<String>,
    /// Which provider shall run it, like `docker`. If it is left out: where its volumes or its snapshot are, what the operator
    /// says of its template, or the default.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z0-9-]+$")]
    provider: Option<String>,
    /// What it starts from. The provider's default if it is left out. Where no provider is named, `docker/python:3.12` names
    /// one too.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    template_id: Option<String>,
    /// The same as `template_id`.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    sandbox_template_id: Option<String>,
    /// The same as `template_id`.
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    template: Option<String>,
    /// Seconds it lives without activity.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout: Option<LifeSeconds>,
    /// What happens then; `pause` if it is left out.
    timeout_action: Option<TimeoutActionWord>,
    /// Words of its maker's own.
    #[schema(schema_with = bounds::metadata_schema)]
    metadata: Option<BTreeMap<String, MetadataValue>>,
    /// Variables every command gets.
    #[schema(schema_with = bounds::env_schema)]
    env: Option<BTreeMap<String, String>>,
    #[schema(schema_with = bounds::memory_limit_schema)]
    memory_limit: Option<MemoryLimit>,
    #[schema(schema_with = bounds::cpu_limit_schema)]
    cpu_limit: Option<CpuLimit>,
    /// What it may reach; the operator's default if nothing is said about it.
    #[schema(value_type = Option<NetworkRequest>)]
    network: Option<Value>,
    /// Whether it may reach what no entry of `network` names; the same as the word in there.
    allow_internet_access: Option<bool>,
    /// Secrets it uses without seeing them: by variable, the secret's name. The variable holds a placeholder.
    #[schema(schema_with = bounds::secrets_schema)]
    secrets: Option<BTreeMap<String, String>>,
    /// Volumes in it: by path inside, the volume's name or id.
    #[schema(schema_with = bounds::volumes_schema)]
    volumes: Option<BTreeMap<String, String>>,
    /// Bytes it may write, like `4g`.
    #[schema(schema_with = bounds::disk_limit_schema)]
    disk_limit: Option<String>,
    /// Processes and threads at once.
    #[schema(schema_with = bounds::pids_schema)]
    pids_limit: Option<Whole<8, 65_536>>,
    /// Another name for it, unique among its owner's.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    alias: Option<String>,
    /// The same as `alias`.
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    name: Option<String>,
    /// Whether a request may wake it when it is paused; yes if it is left out.
    auto_resume: Option<bool>,
}

impl CreateSandbox {
    fn into_request(
        self,
        key: IdempotencyKey,
        defaults: PolicyDefaults,
    ) -> Result<CreateRequest, ApiError> {
        let template = self
            .template_id
            .or(self.sandbox_template_id)
            .or(self.template);
        bounds::optional_text("template_id", template.as_deref(), 1, 512)?;
        bounds::provider(self.provider.as_deref())?;
        owner(self.user_id.as_deref())?;
        let alias = self.alias.or(self.name);
        check_alias(alias.as_deref())?;
        let env = self.env.unwrap_or_default();
        bounds::env("env", &env)?;
        if template
            .as_deref()
            .is_some_and(|it| !it.bytes().all(|b| b.is_ascii_graphic()))
        {
            let problem = "`template_id` is no template's name";
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
            network: network::read_both(self.network, self.allow_internet_access, defaults)?,
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
    app: &App,
    caller: &Caller,
    links: &Links,
    key: IdempotencyKey,
    request: CreateSandbox,
) -> Result<SandboxReply, ApiError> {
    let request = request.into_request(key, PolicyDefaults::from(app))?;
    let sandbox = app.service().create(caller, request).await?;
    audit::note_target(sandbox.id.as_str());
    Ok(SandboxReply::new(&sandbox, links, "Sandbox created"))
}

/// Checks the name of a user a sandbox shall belong to. That user need not exist.
fn owner(name: Option<&str>) -> Result<(), ServiceError> {
    bounds::optional_text("user_id", name, 1, 255)?;
    if name.is_some_and(|name| name.chars().any(|c| c.is_ascii_control())) {
        return Err(ServiceError::invalid(
            "user_id",
            "`user_id` must not hold control characters",
        ));
    }
    Ok(())
}

fn check_alias(name: Option<&str>) -> Result<(), ServiceError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_good = |name: &str| {
        (1..=63).contains(&name.len())
            && is_plain(name.as_bytes()[0])
            && name.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    match name {
        Some(name) if !is_good(name) => Err(ServiceError::invalid(
            "alias",
            "`alias` has 1 to 63 lower-case letters, digits and dashes, and begins with none",
        )),
        _ => Ok(()),
    }
}
