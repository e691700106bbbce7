//! Makes a sandbox.
//!
//! ```text
//!  row `creating`, claimed ──▶ instance at the provider ──▶ row `running`, timer, event
//!        │ quota, key, alias          │ failed: nothing left          │ failed: instance deleted
//!        ▼ refused                    ▼ row `deleted`, with why       ▼ row `deleting`, a timer sees to it
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, Limits, SandboxStatus};
use sandyard_provider::{Instance, InstanceSpec, Mount, Provider, ProviderErrorKind, ProviderInfo};
use sandyard_store::model::{
    Expiry, Idempotency, InsertOutcome, MountedVolume, NewSandbox, Operation, Sandbox,
    SandboxPatch, TimeoutAction, TimerPlan,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::volumes::check_can_mount;
use crate::claim::{CLAIM_FOR, Claim, millis};
use crate::error::{ServiceError, ServiceResult};
use crate::policy;
use crate::random;
use crate::request::{CreateRequest, LimitsRequest};
use crate::service::Service;

/// Bounds on a maker's own words, so that a row stays a row.
const MAX_WORDS_BYTES: usize = 64 << 10;
const MAX_NAME: usize = 128;
/// How long to look for the end of the same request made before.
const REPEAT_PATIENCE: Duration = Duration::from_secs(60);

impl Service {
    /// Makes a sandbox.
    pub async fn create(&self, caller: &Caller, request: CreateRequest) -> ServiceResult<Sandbox> {
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.create_now(&caller, request).await })
            .await
    }

    async fn create_now(&self, caller: &Caller, request: CreateRequest) -> ServiceResult<Sandbox> {
        let began = std::time::Instant::now();
        check_words(&request)?;
        if let Some(policy) = &request.network {
            policy::check(policy)?;
        }
        let owner = owner_of(caller, &request);
        let placeholders = self
            .placeholders(owner, &request.secrets, &request.env)
            .await?;
        let found = self.find_mounts(owner, &request.mounts).await?;
        let provider = match &found.location {
            Some(location) => {
                let provider = self.places().provider(location).await?;
                check_can_mount(&provider)?;
                provider
            }
            None => self.places().default().clone(),
        };
        let mut row = self.new_row(caller, &request, provider.as_ref())?;
        row.mounts = found.mounts;
        row.env.extend(placeholders);
        row.template = self
            .template_called(&row.location, &row.owner, &row.template)
            .await?;
        self.check_template(caller, &row.location, &row.template)
            .await?;
        let idempotency = match &request.idempotency_key {
            Some(key) => Some(Idempotency {
                key: key.clone(),
                fingerprint: self.fingerprint(&row, &request)?,
            }),
            None => None,
        };
        let spec = self.spec_of(&row)?;
        let about = json!({"template": row.template, "provider": row.provider});
        let claim = match self
            .insert(caller, row, about, idempotency.as_ref())
            .await?
        {
            Inserted::New(claim) => *claim,
            Inserted::Repeated(sandbox) => return Ok(*sandbox),
        };
        let made = provider.create(&spec).await;
        let sandbox = self.finish_create(caller, claim, &provider, made).await?;
        metrics::histogram!("sandyard_create_seconds").record(began.elapsed().as_secs_f64());
        Ok(sandbox)
    }

    /// Remembers a sandbox on its way, or finds the one the same request made before. `about` goes into its first event.
    pub(super) async fn insert(
        &self,
        caller: &Caller,
        row: Sandbox,
        about: Value,
        idempotency: Option<&Idempotency>,
    ) -> ServiceResult<Inserted> {
        let quota = self.quota(caller, &row.owner).await?;
        self.check_room().await?;
        let event = self.event(&row, "created", caller, about);
        // Its own timer must wait for its turn too, should time jump while it is made.
        let mut turn = Some(self.locks().lock(&row.id).await);
        for _ in 0..2 {
            let new = NewSandbox {
                holder: self.new_holder(),
                claimed_until_ms: self.clock().now_ms() + millis(CLAIM_FOR),
                sandbox: row.clone(),
            };
            // Should this server die before the end, somebody looks after the row when the claim is over.
            let timer = TimerPlan::Set {
                due_ms: new.claimed_until_ms,
            };
            let outcome = self
                .store()
                .insert_sandbox(&new, idempotency, quota, &event, timer)
                .await?;
            match outcome {
                InsertOutcome::Inserted => {
                    let mut row = new.sandbox.clone();
                    row.claim = Some((Operation::Create, new.holder.clone(), new.claimed_until_ms));
                    return Ok(Inserted::New(Box::new(Claim::held(
                        self.clone(),
                        row,
                        new.holder.clone(),
                        turn.take(),
                    ))));
                }
                InsertOutcome::Repeated(id) => {
                    let earlier = self.wait_until_made(&id).await?;
                    if let Some(sandbox) = earlier {
                        return Ok(Inserted::Repeated(Box::new(sandbox)));
                    }
                    // It never came to be: the key is free for this try.
                    if let Some(idempotency) = idempotency {
                        self.store()
                            .forget_idempotency(&row.owner, &idempotency.key, &id)
                            .await?;
                    }
                }
                InsertOutcome::KeyReused => {
                    return Err(ServiceError::new(
                        ErrorKind::Conflict,
                        "this idempotency key was used for another request",
                    )
                    .hint("use a new key for a new sandbox"));
                }
                InsertOutcome::OverQuota { count } => {
                    return Err(ServiceError::new(
                        ErrorKind::QuotaExceeded,
                        format!(
                            "`{}` has {count} sandboxes, as many as allowed",
                            event.owner
                        ),
                    )
                    .hint("delete one you do not need, or ask an admin for more"));
                }
                InsertOutcome::AliasTaken => {
                    return Err(ServiceError::new(
                        ErrorKind::Conflict,
                        "another sandbox of yours has this name",
                    )
                    .field("alias"));
                }
                InsertOutcome::VolumeGone { id } => {
                    let mounts = &row.mounts;
                    let gone = mounts.iter().find(|mount| mount.volume_id == id);
                    let name = gone.map_or(&id, |mount| &mount.name);
                    return Err(ServiceError::new(
                        ErrorKind::Conflict,
                        format!("volume `{name}` is being deleted"),
                    )
                    .field("mounts"));
                }
            }
        }
        Err(ServiceError::new(
            ErrorKind::Busy,
            "the same request is being made elsewhere",
        ))
    }

    /// Waits for a create that somebody else began; none: it failed.
    async fn wait_until_made(
        &self,
        id: &sandyard_core::SandboxId,
    ) -> ServiceResult<Option<Sandbox>> {
        let deadline = tokio::time::Instant::now() + REPEAT_PATIENCE;
        loop {
            let Some(sandbox) = self.store().sandbox(id).await? else {
                return Ok(None);
            };
            match sandbox.status {
                SandboxStatus::Creating if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                SandboxStatus::Creating => {
                    return Err(ServiceError::new(
                        ErrorKind::Busy,
                        "the first request with this key is still under way",
                    ));
                }
                _ if sandbox.started_ms.is_none() => return Ok(None),
                _ => return Ok(Some(sandbox)),
            }
        }
    }

    /// Writes down how the provider's work ended, and undoes it if that fails.
    pub(crate) async fn finish_create(
        &self,
        caller: &Caller,
        claim: Claim,
        provider: &std::sync::Arc<dyn Provider>,
        made: Result<Instance, sandyard_provider::ProviderError>,
    ) -> ServiceResult<Sandbox> {
        let instance = match made {
            Ok(instance) => instance,
            Err(error) => {
                let is_sure = !matches!(
                    error.kind,
                    ProviderErrorKind::TimedOut | ProviderErrorKind::Unavailable
                );
                let error = describe(error.into());
                self.give_up(caller, claim, &error, is_sure).await;
                return Err(error);
            }
        };
        let now_ms = self.clock().now_ms();
        let id = instance.id.clone();
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Running),
            provider_id: Some(instance.id),
            limits: Some(instance.limits),
            lacks: Some(instance.lacks),
            started_ms: Some(instance.started_ms.unwrap_or(now_ms)),
            last_activity_ms: Some(now_ms),
            fixed_end_ms: (claim.row.expiry == Expiry::Fixed)
                .then(|| Some(now_ms + claim.row.timeout_s * 1000)),
            ..SandboxPatch::default()
        };
        let timer = claim.timer_after(&patch);
        let event = claim.event("running", caller, json!({"provider_id": id}));
        let sandbox_id = claim.row.id.clone();
        let error = match claim.commit(patch, vec![event], timer).await {
            Ok(sandbox) => {
                self.push_grant_soon(&sandbox.id);
                return Ok(sandbox);
            }
            Err(error) => error,
        };
        // The commit may have happened although its answer got lost, or another server may have finished the create.
        match self.store().sandbox(&sandbox_id).await {
            Ok(Some(row))
                if row.status == SandboxStatus::Running
                    && row.provider_id.as_deref() == Some(id.as_str()) =>
            {
                self.push_grant_soon(&row.id);
                return Ok(row);
            }
            Ok(None) => undo_create(provider, &id).await,
            Ok(Some(row))
                if matches!(row.status, SandboxStatus::Deleting | SandboxStatus::Deleted) =>
            {
                undo_create(provider, &id).await;
            }
            // Still `creating`, or nobody knows: its timer and the reconciler end it one way or the other.
            _ => {}
        }
        Err(error)
    }

    /// Ends a create that failed.
    async fn give_up(&self, caller: &Caller, claim: Claim, error: &ServiceError, is_sure: bool) {
        let now_ms = self.clock().now_ms();
        let event = claim.event(
            "create_failed",
            caller,
            json!({"code": error.kind.code(), "detail": error.message}),
        );
        let mut claim = claim;
        let deleting = SandboxPatch {
            status: Some(SandboxStatus::Deleting),
            reason: Some(Some(error.message.clone())),
            ..SandboxPatch::default()
        };
        let soon = TimerPlan::Set {
            due_ms: now_ms + 1000,
        };
        let result = async {
            if !is_sure {
                // The provider may have made it after all: the timer's turn is to look and delete.
                claim.commit(deleting, vec![event], soon).await?;
                return Ok(());
            }
            claim.note(deleting, vec![event], TimerPlan::Keep).await?;
            let gone = SandboxPatch {
                status: Some(SandboxStatus::Deleted),
                deleted_ms: Some(now_ms),
                network: policy::bare(claim.row.network.as_ref()),
                forget_secrets: true,
                ..SandboxPatch::default()
            };
            claim.commit(gone, Vec::new(), TimerPlan::Clear).await?;
            ServiceResult::Ok(())
        }
        .await;
        if let Err(error) = result {
            tracing::warn!(%error, "A failed create could not be written down; the reconciler will");
        }
    }

    /// Refuses when this installation has as many sandboxes as it may have.
    async fn check_room(&self) -> ServiceResult<()> {
        let most = i64::from(self.settings().max_sandboxes);
        if most == 0 {
            return Ok(());
        }
        let counts = self.counts().await?;
        let gone = SandboxStatus::Deleted.as_str();
        let total: i64 = counts
            .iter()
            .filter(|(status, _)| **status != gone)
            .map(|(_, count)| count)
            .sum();
        if total < most {
            return Ok(());
        }
        Err(ServiceError::new(
            ErrorKind::NoCapacity,
            format!("there are {total} sandboxes, as many as allowed"),
        )
        .hint("delete some, or raise `limits.sandboxes`"))
    }

    /// How many sandboxes an owner may have; none: any number. A number given to a user holds for whoever asks; the
    /// settings' number bounds users, not the admins who act for them.
    async fn quota(&self, caller: &Caller, owner: &str) -> ServiceResult<Option<i64>> {
        let own = self
            .store()
            .user(owner)
            .await?
            .and_then(|user| user.max_sandboxes);
        let default = match caller.is_admin() {
            true => 0,
            false => i64::from(self.settings().max_sandboxes_per_user),
        };
        // A user's own number is meant as it stands: 0 is none.
        Ok(own.or((default > 0).then_some(default)))
    }

    fn new_row(
        &self,
        caller: &Caller,
        request: &CreateRequest,
        provider: &dyn Provider,
    ) -> ServiceResult<Sandbox> {
        let info = provider.info();
        let id = random::id()?;
        let network = match request.network.clone() {
            Some(mut policy) => {
                policy::seal(self.sealer(), &id, &mut policy)?;
                Some(policy::write(&policy)?)
            }
            None => None,
        };
        let template = match request.template.as_deref() {
            None | Some("" | "base" | "default") => self
                .settings()
                .default_template
                .clone()
                .filter(|name| name != "base")
                .unwrap_or_else(|| info.default_template.clone()),
            Some(name) => name.to_owned(),
        };
        let now_ms = self.clock().now_ms();
        Ok(Sandbox {
            id,
            owner: owner_of(caller, request).to_owned(),
            alias: request.alias.clone(),
            project: request.project.clone(),
            provider: info.name.clone(),
            location: info.location.clone(),
            provider_id: None,
            template,
            status: SandboxStatus::Creating,
            reason: None,
            limits: Self::limits(&request.limits, info)?,
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

    /// What to ask a provider for, so that it makes what a row says.
    pub(super) fn spec_of(&self, row: &Sandbox) -> ServiceResult<InstanceSpec> {
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
        })
    }

    /// Tells a repetition from another request with the same key.
    fn fingerprint(&self, row: &Sandbox, request: &CreateRequest) -> ServiceResult<String> {
        let mut network = request.network.clone();
        if let Some(policy) = &mut network {
            policy::map_values(policy, |_, header, value| {
                Ok(self.sealer().mark(header, value))
            })?;
        }
        let meaning = json!([
            row.owner,
            row.template,
            request.alias,
            request.project,
            row.timeout_s,
            row.timeout_action,
            row.expiry,
            request.metadata,
            request.env,
            row.limits,
            network,
            request.secrets,
            request.ports,
            row.mounts,
        ]);
        let digest = Sha256::digest(meaning.to_string().as_bytes());
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// What a sandbox gets: what was asked for, else the provider's default; never more than it allows.
    fn limits(asked: &LimitsRequest, info: &ProviderInfo) -> ServiceResult<Limits> {
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

async fn undo_create(provider: &std::sync::Arc<dyn Provider>, id: &str) {
    if let Err(error) = provider.delete(id).await {
        // It carries its sandbox's id, so the reconciler finds it.
        tracing::warn!(%error, instance.id = id, "Undoing a create failed");
    }
}

/// Whose a new sandbox is to be.
fn owner_of<'a>(caller: &'a Caller, request: &'a CreateRequest) -> &'a str {
    match &request.owner {
        Some(owner) if caller.is_admin() => owner,
        _ => &caller.name,
    }
}

/// How remembering a sandbox went.
pub(super) enum Inserted {
    New(Box<Claim>),
    Repeated(Box<Sandbox>),
}

/// A template that does not exist is the caller's mistake, not a missing sandbox.
fn describe(error: ServiceError) -> ServiceError {
    match error.kind {
        ErrorKind::NotFound => error.field("template"),
        _ => error,
    }
}

/// Refuses names and words that are too long or hold what the store cannot.
fn check_words(request: &CreateRequest) -> ServiceResult<()> {
    let names = [
        ("user_id", &request.owner),
        ("alias", &request.alias),
        ("project_name", &request.project),
        ("template", &request.template),
    ];
    for (field, name) in names {
        let Some(name) = name else { continue };
        // `template` and `project` may be empty: some clients send that for «none».
        if name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(ServiceError::invalid(
                field,
                format!("`{field}` has at most {MAX_NAME} bytes and no control characters"),
            ));
        }
    }
    if request.owner.as_deref() == Some("") || request.alias.as_deref() == Some("") {
        return Err(ServiceError::invalid("user_id", "a name must not be empty"));
    }
    if let Some(key) = &request.idempotency_key
        && (key.is_empty() || key.len() > 255 || key.chars().any(char::is_control))
    {
        return Err(ServiceError::invalid(
            "idempotency_key",
            "an idempotency key has 1 to 255 bytes and no control characters",
        ));
    }
    for (field, words) in [
        ("metadata", &request.metadata),
        ("env", &request.env),
        ("ports", &request.ports),
    ] {
        check_map(field, words)?;
    }
    Ok(())
}

/// Refuses a map that is too large or holds NUL bytes.
pub(crate) fn check_map(
    field: &'static str,
    words: &BTreeMap<String, String>,
) -> ServiceResult<()> {
    let bytes: usize = words
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > MAX_WORDS_BYTES {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` has more than {MAX_WORDS_BYTES} bytes"),
        ));
    }
    let is_odd = |text: &String| text.contains('\0');
    if words
        .iter()
        .any(|(name, value)| is_odd(name) || is_odd(value))
    {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` holds a NUL byte"),
        ));
    }
    if matches!(field, "env" | "secrets")
        && let Some(name) = words
            .keys()
            .find(|name| name.is_empty() || name.contains('='))
    {
        return Err(ServiceError::invalid(
            field,
            format!("`{name}` cannot be the name of a variable"),
        ));
    }
    Ok(())
}

fn mount(mounted: &MountedVolume) -> Mount {
    Mount {
        volume: mounted.volume_id.clone(),
        path: mounted.path.clone(),
    }
}
