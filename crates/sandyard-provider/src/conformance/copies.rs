//! Snapshots, forks and differences.

use sandyard_core::SandboxState::{Paused, Running};

use super::subject::{CheckResult, Subject, fails, holds, same, works};
use crate::ProviderErrorKind::{Conflict, Invalid, NotFound};
use crate::instances::InstanceSpec;

pub(super) async fn a_snapshot_is_a_template_until_it_is_removed(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.create().await?.id;
    let name = subject.template_name();
    let snapshot = works("snapshot", provider.snapshot(&id, &name).await)?;
    same("name", &snapshot.name, &name)?;
    same("still runs", subject.inspect(&id).await?.state, Running)?;
    let listed = works("templates", provider.templates().await)?;
    holds(
        "listed",
        listed.iter().any(|template| template.name == name),
    )?;
    let spec = InstanceSpec {
        template: name.clone(),
        ..subject.spec()
    };
    let made = works("create from it", provider.create(&spec).await)?;
    same("template", &made.template, &name)?;
    works("remove", provider.remove_template(&name).await)?;
    let lives_on = subject.inspect(&made.id).await?.state;
    same("instance of the removed template", lives_on, Running)?;
    let second = provider.remove_template(&name).await;
    fails("remove again", NotFound, second)?;
    fails("create", NotFound, provider.create(&spec).await)
}

pub(super) async fn a_snapshot_with_a_bad_or_existing_name_is_refused(
    subject: &Subject,
) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.create().await?.id;
    for name in ["", "..", "a/b", "a\0b"] {
        fails("snapshot", Invalid, provider.snapshot(&id, name).await)?;
    }
    let name = subject.template_name();
    works("snapshot", provider.snapshot(&id, &name).await)?;
    let second = provider.snapshot(&id, &name).await;
    fails("the same name", Conflict, second)?;
    same("still runs", subject.inspect(&id).await?.state, Running)
}

pub(super) async fn a_fork_is_an_instance_of_its_own(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let source = subject.create().await?;
    let can_pause = provider.info().capabilities.can_pause;
    if can_pause {
        works("pause", provider.pause(&source.id).await)?;
    }
    let spec = subject.spec();
    let fork = works("fork", provider.fork(&source.id, &spec).await)?;
    same("state", fork.state, Running)?;
    same("sandbox", fork.sandbox_id.as_ref(), Some(&spec.sandbox_id))?;
    same("limits", &fork.limits, &source.limits)?;
    same("the same id", fork.id == source.id, false)?;
    let expected = if can_pause { Paused } else { Running };
    let after = subject.inspect(&source.id).await?;
    same("state of the source", after.state, expected)?;
    works("delete the source", provider.delete(&source.id).await)?;
    same("the fork", subject.inspect(&fork.id).await?, fork)
}

pub(super) async fn a_new_instance_has_no_differences(subject: &Subject) -> CheckResult {
    let id = subject.create().await?.id;
    let changes = works("diff", subject.provider.diff(&id).await)?;
    same("changes", changes, vec![])
}
