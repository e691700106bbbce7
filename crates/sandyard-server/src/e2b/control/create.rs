//! `POST /v2/sandboxes` and `POST /sandboxes`.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sandyard_core::{Caller, ErrorKind, NetworkPolicy};
use sandyard_service::{CreateRequest, Expiry, MountRequest, ServiceError, TimeoutAction};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::network::{Network, unavailable};
use super::template_name;
use super::view::SandboxView;
use crate::access::Authenticated;
use crate::app::App;
use crate::audit;
use crate::bounds::{self, MetadataValue, Whole};
use crate::error::ApiError;
use crate::extract::{Body, IdempotencyKey};
use crate::model::network::PolicyDefaults;

/// How long a sandbox lives if its maker does not say.
const LIFE: Duration = Duration::from_secs(300);
/// The same for clients of the first generation.
const LIFE_V1: Duration = Duration::from_secs(15);

/// Seconds a sandbox may live. The service knows the operator's bound.
pub(crate) type Life = Whole<0, 315_360_000>;

pub(crate) fn duration(life: Life) -> Duration {
    Duration::from_secs(life.0.unsigned_abs())
}

/// Whether a request wakes a paused sandbox.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bAutoResume)]
pub(crate) struct AutoResume {
    enabled: bool,
}

/// A volume to be put into a sandbox.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bVolumeMount)]
pub(crate) struct VolumeMount {
    /// The volume's name.
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    /// Where, as seen inside.
    #[schema(min_length = 1, max_length = 4096)]
    path: String,
}

/// A sandbox to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bNewSandbox)]
pub(crate) struct NewSandbox {
    /// What it starts from: `base`, a template's name, or a snapshot's.
    #[serde(rename = "templateID")]
    #[schema(min_length = 1, max_length = 512, pattern = r"^[!-~]+$")]
    template_id: String,
    /// Seconds it lives.
    #[schema(inline)]
    timeout: Option<Life>,
    /// Whether it is paused then; else it is removed.
    auto_pause: Option<bool>,
    /// Whether that pause keeps its memory; yes if it is left out.
    auto_pause_memory: Option<bool>,
    auto_resume: Option<AutoResume>,
    /// Whether it may reach what no entry of `network` names.
    #[serde(rename = "allow_internet_access")]
    allow_internet_access: Option<bool>,
    network: Option<Network>,
    /// Words of its maker's own.
    #[schema(schema_with = bounds::env_schema)]
    metadata: Option<BTreeMap<String, String>>,
    /// Variables every command gets.
    #[schema(schema_with = bounds::env_schema)]
    env_vars: Option<BTreeMap<String, String>>,
    /// Tokens of another cloud: not possible here.
    #[schema(value_type = Option<Object>)]
    iam: Option<Value>,
    volume_mounts: Option<Vec<VolumeMount>>,
}

impl NewSandbox {
    fn into_request(
        self,
        app: &App,
        key: IdempotencyKey,
        life: Duration,
    ) -> Result<CreateRequest, ApiError> {
        let template = template_name::read(app, &self.template_id)?;
        let template = match template.provider {
            Some(provider) => format!("{provider}/{}", template.name),
            None => template.name,
        };
        let words = self.metadata.unwrap_or_default().into_iter();
        let words = words.map(|(name, value)| (name, MetadataValue::Text(value)));
        let metadata = bounds::metadata("metadata", words.collect())?;
        let env = self.env_vars.unwrap_or_default();
        bounds::env("envVars", &env)?;
        if self.iam.is_some_and(|iam| has_tokens(&iam)) {
            return Err(unavailable("iam", "tokens of other clouds"));
        }
        let keeps_memory = self.auto_pause_memory.unwrap_or(true);
        let is_auto_resumed = self.auto_resume.is_some_and(|it| it.enabled);
        if is_auto_resumed && !keeps_memory {
            return Err(ServiceError::invalid(
                "autoResume",
                "a sandbox whose pause does not keep its memory cannot be woken by a request: leave out `autoResume`",
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
            timeout: Some(self.timeout.map_or(life, duration)),
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

/// The policy asked for, else the operator's; with the word on who may open ports, which is the operator's too unless said.
fn policy(
    app: &App,
    network: Option<Network>,
    allow_internet_access: Option<bool>,
) -> Result<NetworkPolicy, ApiError> {
    let asked = network
        .unwrap_or_default()
        .into_policy(allow_internet_access, PolicyDefaults::from(app))?;
    let mut policy = asked.unwrap_or_else(|| app.service().settings().default_network.clone());
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

/// Makes a sandbox, for five minutes if nothing is said.
#[utoipa::path(
    post, path = "/e2b/v2/sandboxes", operation_id = "e2b_create", tag = "e2b",
    params(IdempotencyKey), request_body = NewSandbox,
    responses((status = 201, description = "It runs.", body = SandboxView))
)]
pub(crate) async fn e2b_create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    key: IdempotencyKey,
    Body(wanted): Body<NewSandbox>,
) -> Result<(StatusCode, Json<SandboxView>), ApiError> {
    create(&app, &caller, key, wanted, LIFE).await
}

/// Makes a sandbox, for fifteen seconds if nothing is said.
#[utoipa::path(
    post, path = "/e2b/sandboxes", operation_id = "e2b_create_v1", tag = "e2b",
    params(IdempotencyKey), request_body = NewSandbox,
    responses((status = 201, description = "It runs.", body = SandboxView))
)]
pub(crate) async fn e2b_create_v1(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    key: IdempotencyKey,
    Body(wanted): Body<NewSandbox>,
) -> Result<(StatusCode, Json<SandboxView>), ApiError> {
    create(&app, &caller, key, wanted, LIFE_V1).await
}

async fn create(
    app: &App,
    caller: &Caller,
    key: IdempotencyKey,
    wanted: NewSandbox,
    life: Duration,
) -> Result<(StatusCode, Json<SandboxView>), ApiError> {
    let template = wanted.template_id.clone();
    let request = wanted.into_request(app, key, life)?;
    let made = app.service().create(caller, request).await;
    let sandbox = made.map_err(|error| match error.kind {
        ErrorKind::NotFound if error.field == Some("template") => {
            template_name::not_found(app, &template, error)
        }
        _ => error,
    })?;
    audit::note_target(sandbox.id.as_str());
    let view = SandboxView::new(app, caller, &sandbox)?;
    Ok((StatusCode::CREATED, Json(view)))
}
