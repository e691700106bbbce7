//! Makes a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::{HostOptions, Template};

use super::{delete, import, pool};
use crate::boot::boot;
use crate::clock;
use crate::context::Context;
use crate::disk;
use crate::error::{EngineError, ErrorKind, Result};
use crate::mode::Mode;
use crate::random;
use crate::record::Record;
use crate::spec::{DEFAULT_TEMPLATE, SandboxInfo, SandboxSpec};
use crate::steps::{Fault, Steps};
use crate::sys::OperationExt;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;
use crate::volume;

/// How long a scan of the host's programs for changes stays valid.
const HOST_TRUSTED_FOR: Duration = Duration::from_secs(2);

const MAX_LABELS: usize = 64;
const MAX_LABEL_KEY: usize = 128;
const MAX_LABEL_VALUE: usize = 1024;

/// Makes a sandbox, or takes a ready one from the pool.
pub(crate) fn create(
    ctx: &Context,
    spec: SandboxSpec,
    owner: Option<ProcessKey>,
    fault: Option<Fault>,
) -> Result<SandboxInfo> {
    check(ctx, &spec)?;
    disk::check_free_space(&ctx.data)?;
    // Ready sandboxes have no volumes.
    if fault.is_none()
        && spec.mounts.is_empty()
        && let Some(info) = pool::take(ctx, &spec, owner)?
    {
        return Ok(info);
    }
    make(ctx, spec, owner, fault)
}

/// Makes a new sandbox.
pub(crate) fn make(
    ctx: &Context,
    spec: SandboxSpec,
    owner: Option<ProcessKey>,
    fault: Option<Fault>,
) -> Result<SandboxInfo> {
    make_with_id(
        ctx,
        SandboxId::from_random(random::bytes()?),
        spec,
        owner,
        fault,
    )
}

/// Makes a new sandbox with this id.
pub(crate) fn make_with_id(
    ctx: &Context,
    id: SandboxId,
    mut spec: SandboxSpec,
    owner: Option<ProcessKey>,
    fault: Option<Fault>,
) -> Result<SandboxInfo> {
    if fault.is_some() && !ctx.allow_faults {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            "this launcher does not allow faults",
        ));
    }
    let template = find_template(ctx, &spec.template)?;
    if spec.access_token.is_none() {
        spec.access_token = Some(random::token()?);
    }
    let dir = ctx.data.sandbox(&id);
    let mut steps = Steps::new(fault);
    let build = || {
        let creation_lock = steps.step("take the creation lock", || {
            Lock::share(&ctx.data.creation_lock()).operation("share", "the creation lock")
        })?;
        let run = dir.run().to_owned();
        steps.undo("remove lock", move || delete::remove_tree(&run));
        let lock = steps.step("lock it", || {
            dir.make_run()
                .and_then(|()| Lock::try_take(&dir.lock()))
                .operation("lock", dir.lock().display())
        })?;
        drop(creation_lock);
        let root = dir.root().to_owned();
        steps.undo("remove folder", move || delete::remove_tree(&root));
        let disk = steps.step("make its folder", || {
            disk::make(&ctx.data, &dir, ctx.mode, spec.limits.disk_bytes)
        })?;
        let mut record = Record {
            id,
            state: SandboxState::Creating,
            owner: owner.filter(|_| spec.ephemeral),
            spec,
            template,
            disk,
            init: None,
            id_range: None,
            first_uid: None,
            trust: None,
            created_ms: clock::now_ms(),
            started_ms: None,
            reason: None,
            ending: None,
            limitations: Vec::new(),
        };
        boot(ctx, &dir, &mut record, &mut steps, fault)?;
        drop(lock);
        Ok(record.info())
    };
    let result = build();
    steps.finish(result)
}

/// Rejects specs that cannot work, before anything is made.
pub(crate) fn check(ctx: &Context, spec: &SandboxSpec) -> Result<()> {
    spec.limits
        .check(&ctx.settings.hard_limits)
        .map_err(|error| EngineError::new(ErrorKind::Invalid, error.to_string()))?;
    ctx.memory.check()?;
    let is_invalid = |name: &str| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = spec.env.keys().find(|name| is_invalid(name)) {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!(
                "`{name}` is not a valid name of an environment variable: it is empty or contains `=` or a NUL byte"
            ),
        ));
    }
    if let Some((name, _)) = spec.env.iter().find(|(_, value)| value.contains('\0')) {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!("the value of environment variable `{name}` contains a NUL byte"),
        ));
    }
    check_labels(&spec.labels)?;
    volume::check(&spec.mounts)?;
    let hostname = spec.hostname.as_deref().unwrap_or("a");
    let fits = (1..=63).contains(&hostname.len())
        && hostname
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !fits {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!("`{hostname}` is not a valid host name"),
        )
        .hint("use 1 to 63 letters, digits and dashes"));
    }
    Ok(())
}

/// Rejects labels that would make records large.
fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    let invalid = |message: String| Err(EngineError::new(ErrorKind::Invalid, message));
    if labels.len() > MAX_LABELS {
        return invalid(format!(
            "a sandbox can have at most {MAX_LABELS} labels (got {})",
            labels.len()
        ));
    }
    for (key, value) in labels {
        if key.is_empty() || key.len() > MAX_LABEL_KEY || value.len() > MAX_LABEL_VALUE {
            let short: String = key.chars().take(MAX_LABEL_KEY).collect();
            return invalid(format!(
                "label `{short}` is too long or empty: names have 1 to {MAX_LABEL_KEY} bytes, values up to {MAX_LABEL_VALUE}"
            ));
        }
    }
    Ok(())
}

/// Finds a template by name; `host` is made on first use.
pub(crate) fn find_template(ctx: &Context, name: &str) -> Result<Template> {
    let failed = |error| EngineError::template(format!("opening template `{name}`"), &error);
    if name == DEFAULT_TEMPLATE {
        let options = HostOptions {
            shim_program: Some(ctx.program.clone()),
            // The host's own `sudo` is setuid to an id that does not exist inside.
            prefer_shim: ctx.mode != Mode::Root,
            trust_for: HOST_TRUSTED_FOR,
            ..HostOptions::new(ctx.owners())
        };
        return ctx.templates.host_template(&options).map_err(failed);
    }
    let found = ctx.templates.get(name).map_err(failed)?;
    found.ok_or_else(|| import::not_found(name))
}
