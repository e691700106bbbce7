//! Makes another sandbox from the files of one.

use sandyard_core::SandboxId;

use super::{create, snapshot};
use crate::context::Context;
use crate::error::Result;
use crate::random;
use crate::spec::{ForkSpec, SandboxInfo, SandboxSpec};
use crate::sys::process::ProcessKey;

/// Prefix of the temporary template of a fork.
pub(crate) const PREFIX: &str = "fork-";

/// Makes a copy with the same files, limits, volumes and (unless given) variables, and its own id, token, labels and processes.
pub(crate) fn fork(
    ctx: &Context,
    id: &SandboxId,
    spec: ForkSpec,
    owner: Option<ProcessKey>,
) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    let name = format!("{PREFIX}{id}-{}", &random::token()?[..8]);
    snapshot::snapshot_open(ctx, &mut open, &name)?;
    let spec = SandboxSpec {
        template: name.clone(),
        limits: open.record.spec.limits.clone(),
        env: spec.env.unwrap_or_else(|| open.record.spec.env.clone()),
        access_token: spec.access_token,
        hostname: spec.hostname,
        labels: spec.labels,
        mounts: open.record.spec.mounts.clone(),
        ..SandboxSpec::default()
    };
    let made = create::check(ctx, &spec).and_then(|()| create::make(ctx, spec, owner, None));
    // Only the name is removed: the layer stays as long as a sandbox uses it.
    let removed = super::import::remove(ctx, &name);
    let info = made?;
    removed?;
    Ok(info)
}
