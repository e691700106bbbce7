//! Makes a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::{HostOptions, Template};

use super::{delete, pool};
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
use crate::sys::Doing;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;
use crate::volume;

/// For how long the host is not looked at again for changes of its programs.
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
    // A ready one has no volumes, and cannot be given any.
    if fault.is_none()
        && spec.mounts.is_empty()
        && let Some(info) = pool::take(ctx, &spec, owner)?
    {
        return Ok(info);
    }
    make(ctx, spec, owner, fault)
}

/// Makes a sandbox from nothing.
pub(crate) fn make(
    ctx: &Context,
    spec: SandboxSpec,
    owner: Option<ProcessKey>,
    fault: Option<Fault>,
) -> Result<SandboxInfo> {
    make_named(
        ctx,
        SandboxId::from_random(random::bytes()?),
        spec,
        owner,
        fault,
    )
}

/// Makes a sandbox from nothing, whose id is known already.
pub(crate) fn make_named(
    ctx: &Context,
    id: SandboxId,
    mut spec: SandboxSpec,
    owner: Option<ProcessKey>,
    fault: Option<Fault>,
) -> Result<SandboxInfo> {
    if fault.is_some() && !ctx.allow_faults {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            "this launcher does not fail on demand",
        ));
    }
    let template = find_template(ctx, &spec.template)?;
    if spec.access_token.is_none() {
        spec.access_token = Some(random::token()?);
    }
    let dir = ctx.data.sandbox(&id);
    let mut steps = Steps::new(fault);
    let build = || {
        let births = steps.step("announce it", || {
            Lock::share(&ctx.data.births_lock()).doing("share", "births.lock")
        })?;
        let run = dir.run().to_owned();
        steps.undo("remove lock", move || delete::remove_tree(&run));
        let lock = steps.step("lock it", || {
            dir.make_run()
                .and_then(|()| Lock::try_take(&dir.lock()))
                .doing("lock", dir.lock().display())
        })?;
        drop(births);
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
            lacks: Vec::new(),
        };
        boot(ctx, &dir, &mut record, &mut steps, fault)?;
        drop(lock);
        Ok(record.info())
    };
    let result = build();
    steps.finish(result)
}

/// Refuses what could not work before anything is touched.
pub(crate) fn check(ctx: &Context, spec: &SandboxSpec) -> Result<()> {
    spec.limits
        .check(&ctx.settings.hard_limits)
        .map_err(|error| EngineError::new(ErrorKind::Invalid, error.to_string()))?;
    ctx.memory.check()?;
    let odd = |name: &str| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = spec.env.keys().find(|name| odd(name)) {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!("`{name}` cannot be the name of a variable"),
        ));
    }
    if let Some((name, _)) = spec.env.iter().find(|(_, value)| value.contains('\0')) {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!("the value of `{name}` has a NUL byte"),
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
            format!("`{hostname}` cannot be a host name"),
        )
        .hint("use 1 to 63 letters, digits and dashes"));
    }
    Ok(())
}

/// Refuses labels that would make records large.
fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    let invalid = |message: String| Err(EngineError::new(ErrorKind::Invalid, message));
    if labels.len() > MAX_LABELS {
        return invalid(format!("more than {MAX_LABELS} labels"));
    }
    for (key, value) in labels {
        if key.is_empty() || key.len() > MAX_LABEL_KEY || value.len() > MAX_LABEL_VALUE {
            let short: String = key.chars().take(MAX_LABEL_KEY).collect();
            return invalid(format!(
                "label `{short}` is out of range: allowed is 1 to {MAX_LABEL_KEY} bytes for the name and {MAX_LABEL_VALUE} for the value"
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
            // The host's own is setuid to an id that does not exist inside.
            prefer_shim: ctx.mode != Mode::Root,
            trust_for: HOST_TRUSTED_FOR,
            ..HostOptions::new(ctx.owners())
        };
        return ctx.templates.host_template(&options).map_err(failed);
    }
    ctx.templates.get(name).map_err(failed)?.ok_or_else(|| {
        EngineError::new(ErrorKind::NotFound, format!("no template `{name}`"))
            .hint("`sandyard template ls` lists them")
    })
}
