//! `POST /v2/sandboxes` and `POST /sandboxes`.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_core::NetworkPolicy;
use sandyard_service::{CreateRequest, Expiry, MountRequest, TimeoutAction};
use serde_json::Value;

use super::network::{Network, unavailable};
use super::template_name;
use super::view::SandboxView;
use crate::app::App;
use crate::audit;
use crate::bounds::MetadataValue;
use crate::extract::IdempotencyKey;
use crate::model::network::PolicyDefaults;
use crate::prelude::*;

/// Default time that a sandbox lives.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// Default time of a sandbox of the first version of the API.
const DEFAULT_TIMEOUT_V1: Duration = Duration::from_secs(15);

/// Seconds that a sandbox lives. The service checks the operator's maximum.
pub(crate) type TimeoutSeconds = BoundedInt<0, 315_360_000>;

pub(crate) fn duration(seconds: TimeoutSeconds) -> Duration {
    Duration::from_secs(seconds.0.unsigned_abs())
}

/// Automatic resume of a paused sandbox.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bAutoResume)]
pub(crate) struct AutoResume {
    /// Whether a request wakes the sandbox when it is paused.
    enabled: bool,
}

/// Volume to mount into a sandbox.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bVolumeMount)]
pub(crate) struct VolumeMount {
    /// Name of the volume.
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    /// Absolute path inside the sandbox.
    #[schema(min_length = 1, max_length = 4096)]
    path: String,
}

/// Request to create a sandbox for E2B clients.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bNewSandbox)]
pub(crate) struct NewSandbox {
    /// Template to start from: `base`, the name of a template, or the name of a snapshot.
    #[serde(rename = "templateID")]
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    template_id: String,
    /// Lifetime in seconds (default 300; 15 in the first API version).
    #[schema(inline)]
    timeout: Option<TimeoutSeconds>,
    /// Whether to pause the sandbox when its lifetime is over (default false: delete it).
    auto_pause: Option<bool>,
    /// Whether that pause keeps the memory (default true).
    auto_pause_memory: Option<bool>,
    /// Whether a request wakes the sandbox when it is paused.
    auto_resume: Option<AutoResume>,
    /// Whether the sandbox may reach hosts that no entry of `network` names. Default: the operator's policy.
    #[serde(rename = "allow_internet_access")]
    allow_internet_access: Option<bool>,
    /// Egress policy. Default: the operator's policy.
    network: Option<Network>,
    /// Labels chosen by the caller.
    #[schema(schema_with = bounds::env_schema)]
    metadata: Option<BTreeMap<String, String>>,
    /// Environment variables of every command.
    #[schema(schema_with = bounds::env_schema)]
    env_vars: Option<BTreeMap<String, String>>,
    /// Identity of another cloud. Not supported: the request is rejected if it is set.
    #[schema(value_type = Option<Object>)]
    iam: Option<Value>,
    /// Volumes to mount.
    volume_mounts: Option<Vec<VolumeMount>>,
}

impl NewSandbox {
    fn into_request(
        self,
        app: &App,
        key: IdempotencyKey,
        default_timeout: Duration,
    ) -> ApiResult<CreateRequest> {
        let template = template_name::read(app, &self.template_id)?;
        let template = match template.provider {
            Some(provider) => format!("{provider}/{}", template.name),
            None => template.name,
        };
        let labels = self.metadata.unwrap_or_default().into_iter();
        let labels = labels.map(|(name, value)| (name, MetadataValue::Text(value)));
        let metadata = bounds::metadata("metadata", labels.collect())?;
        let env = self.env_vars.unwrap_or_default();
        bounds::env("envVars", &env)?;
        if self.iam.is_some_and(|iam| has_tokens(&iam)) {
            return Err(unavailable("iam", "tokens of E2B's identity service"));
        }
        let keeps_memory = self.auto_pause_memory.unwrap_or(true);
        let is_auto_resumed = self.auto_resume.is_some_and(|it| it.enabled);
        if is_auto_resumed && !keeps_memory {
            return Err(ServiceError::invalid(
                "autoResume",
                "requests cannot resume a sandbox whose pause does not keep its memory: leave out `autoResume`",
            )
            .into());
        }
        let mounts = self.volume_mounts.unwrap_or_default().into_iter();
        let mounts = mounts.map(|mount| MountRequest {
            volume: mount.name,
            path: mount.path,
        });
        Ok(CreateRequest {
            template: Some(template),
            timeout: Some(self.timeout.map_or(default_timeout, duration)),
            timeout_action: Some(match self.auto_pause.unwrap_or(false) {
                false => TimeoutAction::Delete,
                true if keeps_memory => TimeoutAction::Pause,
                true => TimeoutAction::Stop,
            }),
            expiry: Some(Expiry::Fixed),
            metadata,
            env,
            network: Some(policy(app, self.network, self.allow_internet_access)?),
            mounts: mounts.collect(),
            is_auto_resumed: Some(is_auto_resumed),
            idempotency_key: key.key,
            ..CreateRequest::default()
        })
    }
}

/// The requested policy, else the operator's. Whether ports are public is the operator's choice unless the request decides it.
fn policy(
    app: &App,
    network: Option<Network>,
    allow_internet_access: Option<bool>,
) -> ApiResult<NetworkPolicy> {
    let requested = network
        .unwrap_or_default()
        .into_policy(allow_internet_access, PolicyDefaults::from(app))?;
    let mut policy = requested.unwrap_or_else(|| app.service().settings().default_network.clone());
    policy
        .allow_public_traffic
        .get_or_insert(app.settings().e2b_public_traffic);
    Ok(policy)
}

fn has_tokens(iam: &Value) -> bool {
    match iam.get("tokens") {
        Some(Value::Object(tokens)) => !tokens.is_empty(),
        Some(Value::Null) | None => false,
        Some(_) => true,
    }
}

/// Create a sandbox for E2B clients
///
/// Creates a sandbox that lives five minutes unless `timeout` is given. Send an `Idempotency-Key` header to make a
/// retry return the same sandbox.
#[utoipa::path(
    post, path = "/e2b/v2/sandboxes", tag = "e2b", params(IdempotencyKey), request_body = NewSandbox,
    responses((status = 201, description = "Sandbox created and running.", body = SandboxView))
)]
pub(crate) async fn e2b_create(
    call: Call,
    key: IdempotencyKey,
    Body(new): Body<NewSandbox>,
) -> ApiResult<(StatusCode, Json<SandboxView>)> {
    create(&call, key, new, DEFAULT_TIMEOUT).await
}

/// Create a short-lived sandbox
///
/// Creates a sandbox that lives 15 seconds unless `timeout` is given. Clients of the first API version use it.
#[utoipa::path(
    post, path = "/e2b/sandboxes", tag = "e2b", params(IdempotencyKey), request_body = NewSandbox,
    responses((status = 201, description = "Sandbox created and running.", body = SandboxView))
)]
pub(crate) async fn e2b_create_v1(
    call: Call,
    key: IdempotencyKey,
    Body(new): Body<NewSandbox>,
) -> ApiResult<(StatusCode, Json<SandboxView>)> {
    create(&call, key, new, DEFAULT_TIMEOUT_V1).await
}

async fn create(
    call: &Call,
    key: IdempotencyKey,
    new: NewSandbox,
    default_timeout: Duration,
) -> ApiResult<(StatusCode, Json<SandboxView>)> {
    let template = new.template_id.clone();
    let request = new.into_request(&call.app, key, default_timeout)?;
    let created = call.service().create(&call.caller, request).await;
    let sandbox = created.map_err(|error| match error.kind {
        ErrorKind::NotFound if error.field == Some("template") => {
            template_name::not_found(&call.app, &template, error)
        }
        _ => error,
    })?;
    audit::note_sandbox(sandbox.id.as_str());
    let view = SandboxView::new(call, &sandbox)?;
    Ok((StatusCode::CREATED, Json(view)))
}
