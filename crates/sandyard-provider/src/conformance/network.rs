//! Egress: granted, changed, granted to a missing instance.

use sandyard_core::network::{NetworkGrant, SecretGrant, SecretText, Target};
use sandyard_core::{NetworkPolicy, SandboxId};

use super::subject::{CheckError, CheckResult, Subject, fails, holds, same, works};
use crate::ProviderErrorKind::NotFound;
use crate::instances::Instance;

/// A secret that no answer may contain.
const SECRET: &str = "a-secret-of-the-conformance-suite";

pub(super) async fn egress_can_be_granted_twice_and_changed(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    let open = set(subject, &made, open()).await?;
    let closed = set(subject, &made, closed()).await?;
    same(
        "closed a second time",
        set(subject, &made, self::closed()).await?,
        closed,
    )?;
    same("open again", set(subject, &made, self::open()).await?, open)?;
    same("inspect", subject.inspect(&made.id).await?, made)
}

pub(super) async fn a_missing_instance_has_no_egress(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let grant = grant(&subject.spec().sandbox_id, open());
    let long = "a".repeat(5000);
    for id in ["nosuchinstance", "", "..", "../x", "A-b", "a\0b", &long] {
        fails(
            "set_network",
            NotFound,
            provider.set_network(id, &grant).await,
        )?;
    }
    let made = subject.create().await?;
    set(subject, &made, open()).await?;
    works("delete", provider.delete(&made.id).await)?;
    let grant = self::grant(sandbox_of(&made)?, open());
    let late = provider.set_network(&made.id, &grant).await;
    fails("set_network of a deleted instance", NotFound, late)?;
    let found = works("inspect", provider.inspect(&made.id).await)?;
    same("inspect", found, None)
}

pub(super) async fn egress_can_be_changed_across_a_pause(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    set(subject, &made, open()).await?;
    let paused = works("pause", subject.provider.pause(&made.id).await)?;
    set(subject, &made, closed()).await?;
    same("still paused", subject.inspect(&made.id).await?, paused)?;
    works("resume", subject.provider.resume(&made.id).await)?;
    set(subject, &made, open()).await?;
    same("as before", subject.inspect(&made.id).await?, made)
}

pub(super) async fn egress_can_be_changed_across_a_stop(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    set(subject, &made, open()).await?;
    let stopped = works("stop", subject.provider.stop(&made.id).await)?;
    set(subject, &made, closed()).await?;
    same("still stopped", subject.inspect(&made.id).await?, stopped)?;
    let started = works("start", subject.provider.start(&made.id).await)?;
    set(subject, &made, open()).await?;
    same("as before", subject.inspect(&made.id).await?, started)
}

/// Grants an instance its egress, and returns the limitations.
async fn set(
    subject: &Subject,
    instance: &Instance,
    policy: NetworkPolicy,
) -> CheckResult<Vec<String>> {
    let grant = grant(sandbox_of(instance)?, policy);
    let limitations = works(
        "set_network",
        subject.provider.set_network(&instance.id, &grant).await,
    )?;
    let is_leaked = limitations.iter().any(|text| text.contains(SECRET));
    holds("the answer contains no secret", !is_leaked)?;
    Ok(limitations)
}

fn sandbox_of(instance: &Instance) -> CheckResult<&SandboxId> {
    let unowned = || CheckError::Failed(format!("`{}` belongs to no sandbox", instance.id));
    instance.sandbox_id.as_ref().ok_or_else(unowned)
}

fn open() -> NetworkPolicy {
    NetworkPolicy::default()
}

fn closed() -> NetworkPolicy {
    let mut policy = NetworkPolicy::default();
    policy.deny([Target::everything()]);
    policy.allow(["api.example.com:443", "*.example.org"].map(target));
    policy
}

fn target(text: &str) -> Target {
    text.parse().expect("a valid constant")
}

fn grant(sandbox_id: &SandboxId, policy: NetworkPolicy) -> NetworkGrant {
    NetworkGrant {
        sandbox_id: sandbox_id.clone(),
        owner: "conformance".to_owned(),
        policy,
        secrets: vec![SecretGrant {
            name: "key".to_owned(),
            placeholder: "placeholder-of-the-conformance-suite".to_owned(),
            value: SecretText::new(SECRET),
            hosts: vec!["api.example.com".parse().expect("a valid constant")],
        }],
        is_leading: true,
    }
}
