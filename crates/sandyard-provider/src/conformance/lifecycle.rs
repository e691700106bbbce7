//! The lifecycle from create to delete: each step once, twice, and in the wrong state.

use crate::templates::Ready;
use std::collections::BTreeSet;

use sandyard_core::SandboxState::{Paused, Running, Stopped};

use super::subject::{CheckError, CheckResult, Subject, fails, holds, same, works};
use crate::ProviderErrorKind::Conflict;

pub(super) async fn the_providers_info_is_valid(subject: &Subject) -> CheckResult {
    works("check_health", subject.provider.check_health().await)?;
    let info = subject.provider.info();
    works("its limits", info.default_limits.check(&info.max_limits))?;
    let texts = [&info.name, &info.location, &info.default_template];
    holds("no text is empty", !texts.iter().any(|t| t.is_empty()))
}

pub(super) async fn a_new_instance_runs_and_is_found_by_id_and_by_sandbox(
    subject: &Subject,
) -> CheckResult {
    let spec = subject.spec();
    let made = works("create", subject.provider.create(&spec).await)?;
    same("state", made.state, Running)?;
    same("sandbox", made.sandbox_id.as_ref(), Some(&spec.sandbox_id))?;
    same("template", &made.template, &spec.template)?;
    same("limits", &made.limits, &spec.limits)?;
    same("reason", &made.reason, &None)?;
    holds("created after 1970", made.created_ms > 0)?;
    holds("started", made.started_ms.is_some())?;
    same("inspect", &subject.inspect(&made.id).await?, &made)?;
    subject.lists(&spec.sandbox_id, &[made]).await
}

pub(super) async fn concurrent_creates_make_different_instances(subject: &Subject) -> CheckResult {
    let (a, b, c, d) = tokio::join!(
        subject.create(),
        subject.create(),
        subject.create(),
        subject.create()
    );
    let made = [a?, b?, c?, d?];
    let ids: BTreeSet<_> = made.iter().map(|instance| &instance.id).collect();
    same("different ids", ids.len(), made.len())?;
    for instance in &made {
        same("inspect", &subject.inspect(&instance.id).await?, instance)?;
    }
    Ok(())
}

pub(super) async fn deleting_twice_succeeds_and_leaves_nothing(subject: &Subject) -> CheckResult {
    let spec = subject.spec();
    let made = works("create", subject.provider.create(&spec).await)?;
    for _ in 0..2 {
        works("delete", subject.provider.delete(&made.id).await)?;
        let found = works("inspect", subject.provider.inspect(&made.id).await)?;
        same("inspect", found, None)?;
    }
    subject.lists(&spec.sandbox_id, &[]).await
}

pub(super) async fn pausing_and_resuming_can_be_repeated(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    for _ in 0..2 {
        let paused = works("pause", subject.provider.pause(&made.id).await)?;
        same("state", paused.state, Paused)?;
        same("inspect", subject.inspect(&made.id).await?, paused)?;
    }
    for _ in 0..2 {
        let resumed = works("resume", subject.provider.resume(&made.id).await)?;
        same("as before", &resumed, &made)?;
        same("inspect", &subject.inspect(&made.id).await?, &made)?;
    }
    Ok(())
}

pub(super) async fn stopping_and_starting_can_be_repeated(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    for _ in 0..2 {
        let stopped = works("stop", subject.provider.stop(&made.id).await)?;
        same("state", stopped.state, Stopped)?;
        same("no reason after a requested stop", &stopped.reason, &None)?;
        same("sandbox", &stopped.sandbox_id, &made.sandbox_id)?;
        same("inspect", subject.inspect(&made.id).await?, stopped)?;
    }
    for _ in 0..2 {
        let started = works("start", subject.provider.start(&made.id).await)?;
        same("state", started.state, Running)?;
        same("sandbox", &started.sandbox_id, &made.sandbox_id)?;
        same("made", started.created_ms, made.created_ms)?;
        let is_later = started.started_ms >= made.started_ms;
        holds("started not before it was created", is_later)?;
    }
    Ok(())
}

pub(super) async fn calls_in_the_wrong_state_are_conflicts(subject: &Subject) -> CheckResult {
    let id = subject.create().await?.id;
    let provider = &subject.provider;
    works("pause", provider.pause(&id).await)?;
    fails(
        "start of a paused instance",
        Conflict,
        provider.start(&id).await,
    )?;
    let stopped = works("stop of a paused instance", provider.stop(&id).await)?;
    same("state", stopped.state, Stopped)?;
    fails(
        "pause of a stopped instance",
        Conflict,
        provider.pause(&id).await,
    )?;
    fails(
        "resume of a stopped instance",
        Conflict,
        provider.resume(&id).await,
    )?;
    same("inspect", subject.inspect(&id).await?, stopped)
}

pub(super) async fn every_state_can_be_deleted(subject: &Subject) -> CheckResult {
    let paused = subject.create().await?.id;
    works("pause", subject.provider.pause(&paused).await)?;
    let stopped = subject.create().await?.id;
    works("stop", subject.provider.stop(&stopped).await)?;
    for id in [paused, stopped] {
        works("delete", subject.provider.delete(&id).await)?;
        let found = works("inspect", subject.provider.inspect(&id).await)?;
        same("inspect", found, None)?;
    }
    Ok(())
}

pub(super) async fn ready_instances_are_not_listed(subject: &Subject) -> CheckResult {
    let before = works("list", subject.provider.list().await)?;
    works(
        "keep one ready",
        subject.provider.keep_ready(&[pool_of_one()]).await,
    )?;
    let result = check_with_ready_instance(subject, before.len()).await;
    works("keep none ready", subject.provider.keep_ready(&[]).await)?;
    result
}

async fn check_with_ready_instance(subject: &Subject, before: usize) -> CheckResult {
    let listed = works("list", subject.provider.list().await)?;
    same("listed with one ready", listed.len(), before)?;
    let mut spec = subject.spec();
    spec.limits = subject.provider.info().default_limits.clone();
    let made = works("create", subject.provider.create(&spec).await)?;
    same("sandbox", made.sandbox_id.as_ref(), Some(&spec.sandbox_id))?;
    match subject.sh(&made.id, "echo $WHO").await {
        Err(CheckError::NotApplicable) => Ok(()),
        output => same("its own variables", output?.as_str(), "conformance"),
    }
}

fn pool_of_one() -> Ready {
    Ready {
        template: None,
        count: 1,
    }
}
