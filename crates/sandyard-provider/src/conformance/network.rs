//! The way out: given, changed, given to what is not there.

use sandyard_core::network::{NetworkGrant, SecretGrant, SecretText, Target};
use sandyard_core::{NetworkPolicy, SandboxId};

use super::subject::{Done, Subject, Trouble, fails, same, works};
use crate::ProviderErrorKind::NotFound;
use crate::instance::Instance;

/// What no answer may hold.
const SECRET: &str = "a-secret-of-the-conformance-suite";

pub(super) async fn the_way_out_can_be_given_again_and_changed(subject: &Subject) -> Done {
    let made = subject.create().await?;
    let open = set(subject, &made, open()).await?;
    let closed = set(subject, &made, closed()).await?;
    same(
        "closed once more",
        set(subject, &made, self::closed()).await?,
        closed,
    )?;
    same("open again", set(subject, &made, self::open()).await?, open)?;
    same("inspect", subject.inspect(&made.id).await?, made)
}

pub(super) async fn what_is_not_there_has_no_way_out(subject: &Subject) -> Done {
    let provider = &subject.provider;
    let grant = grant(&subject.spec().sandbox_id, open());
    let long = "a".repeat(5000);
    for id in ["nobodyhasthisid", "", "..", "../x", "A-b", "a\0b", &long] {
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
    fails("set_network of a deleted one", NotFound, late)?;
    let found = works("inspect", provider.inspect(&made.id).await)?;
    same("inspect", found, None)
}

pub(super) async fn the_way_out_can_be_changed_across_a_pause(subject: &Subject) -> Done {
    let made = subject.create().await?;
    set(subject, &made, open()).await?;
    let paused = works("pause", subject.provider.pause(&made.id).await)?;
    set(subject, &made, closed()).await?;
    same("still paused", subject.inspect(&made.id).await?, paused)?;
    works("resume", subject.provider.resume(&made.id).await)?;
    set(subject, &made, open()).await?;
    same("as before", subject.inspect(&made.id).await?, made)
}

pub(super) async fn the_way_out_can_be_changed_across_a_stop(subject: &Subject) -> Done {
    let made = subject.create().await?;
    set(subject, &made, open()).await?;
    let stopped = works("stop", subject.provider.stop(&made.id).await)?;
    set(subject, &made, closed()).await?;
    same("still stopped", subject.inspect(&made.id).await?, stopped)?;
    let started = works("start", subject.provider.start(&made.id).await)?;
    set(subject, &made, open()).await?;
    same("as before", subject.inspect(&made.id).await?, started)
}

/// Gives an instance its way out, and returns what of it does not hold there.
async fn set(subject: &Subject, made: &Instance, policy: NetworkPolicy) -> Done<Vec<String>> {
    let grant = grant(sandbox_of(made)?, policy);
    let lacks = works(
        "set_network",
        subject.provider.set_network(&made.id, &grant).await,
    )?;
    let is_told = lacks.iter().any(|text| text.contains(SECRET));
    same("the answer tells a secret", is_told, false)?;
    Ok(lacks)
}

fn sandbox_of(made: &Instance) -> Done<&SandboxId> {
    let nobody = || Trouble::Wrong(format!("`{}` belongs to no sandbox", made.id));
    made.sandbox_id.as_ref().ok_or_else(nobody)
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
    text.parse().expect("written here")
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
            hosts: vec!["api.example.com".parse().expect("written here")],
        }],
        is_leading: true,
    }
}
