//! A life from create to delete: each step once, twice and out of turn.

use crate::templates::Ready;
use std::collections::BTreeSet;

use sandyard_core::SandboxState::{Paused, Running, Stopped};

use super::subject::{Done, Subject, Trouble, fails, same, works};
use crate::ProviderErrorKind::Conflict;

pub(super) async fn what_it_says_of_itself_is_sound(subject: &Subject) -> Done {
    works("check_health", subject.provider.check_health().await)?;
    let info = subject.provider.info();
    works("its limits", info.default_limits.check(&info.max_limits))?;
    let texts = [&info.name, &info.location, &info.default_template];
    same("a text is empty", texts.iter().any(|t| t.is_empty()), false)
}

pub(super) async fn a_new_instance_runs_and_is_found_by_id_and_by_sandbox(
    subject: &Subject,
) -> Done {
    let spec = subject.spec();
    let made = works("create", subject.provider.create(&spec).await)?;
    same("state", made.state, Running)?;
    same("sandbox", made.sandbox_id.as_ref(), Some(&spec.sandbox_id))?;
    same("template", &made.template, &spec.template)?;
    same("limits", &made.limits, &spec.limits)?;
    same("reason", &made.reason, &None)?;
    same("made after 1970", made.created_ms > 0, true)?;
    same("started", made.started_ms.is_some(), true)?;
    same("inspect", &subject.inspect(&made.id).await?, &made)?;
    same(
        "list",
        subject.made_for(&spec.sandbox_id).await?,
        vec![made],
    )
}

pub(super) async fn several_are_made_at_once_and_each_is_its_own(subject: &Subject) -> Done {
    let (a, b, c, d) = tokio::join!(
        subject.create(),
        subject.create(),
        subject.create(),
        subject.create()
    );
    let made = [a?, b?, c?, d?];
    let ids: BTreeSet<_> = made.iter().map(|one| &one.id).collect();
    same("different ids", ids.len(), made.len())?;
    for one in &made {
        same("inspect", &subject.inspect(&one.id).await?, one)?;
    }
    Ok(())
}

pub(super) async fn deleting_twice_succeeds_and_nothing_is_left(subject: &Subject) -> Done {
    let spec = subject.spec();
    let made = works("create", subject.provider.create(&spec).await)?;
    for _ in 0..2 {
        works("delete", subject.provider.delete(&made.id).await)?;
        let found = works("inspect", subject.provider.inspect(&made.id).await)?;
        same("inspect", found, None)?;
    }
    same("list", subject.made_for(&spec.sandbox_id).await?, vec![])
}

pub(super) async fn pausing_and_resuming_can_be_repeated(subject: &Subject) -> Done {
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

pub(super) async fn stopping_and_starting_can_be_repeated(subject: &Subject) -> Done {
    let made = subject.create().await?;
    for _ in 0..2 {
        let stopped = works("stop", subject.provider.stop(&made.id).await)?;
        same("state", stopped.state, Stopped)?;
        same("reason, for it was asked", &stopped.reason, &None)?;
        same("sandbox", &stopped.sandbox_id, &made.sandbox_id)?;
        same("inspect", subject.inspect(&made.id).await?, stopped)?;
    }
    for _ in 0..2 {
        let started = works("start", subject.provider.start(&made.id).await)?;
        same("state", started.state, Running)?;
        same("sandbox", &started.sandbox_id, &made.sandbox_id)?;
        same("made", started.created_ms, made.created_ms)?;
        let moved_on = started.started_ms >= made.started_ms;
        same("started not before it was made", moved_on, true)?;
    }
    Ok(())
}

pub(super) async fn what_the_state_does_not_allow_is_a_conflict(subject: &Subject) -> Done {
    let id = subject.create().await?.id;
    let provider = &subject.provider;
    works("pause", provider.pause(&id).await)?;
    fails("start of a paused one", Conflict, provider.start(&id).await)?;
    let stopped = works("stop of a paused one", provider.stop(&id).await)?;
    same("state", stopped.state, Stopped)?;
    fails(
        "pause of a stopped one",
        Conflict,
        provider.pause(&id).await,
    )?;
    fails(
        "resume of a stopped one",
        Conflict,
        provider.resume(&id).await,
    )?;
    same("inspect", subject.inspect(&id).await?, stopped)
}

pub(super) async fn every_state_can_be_deleted(subject: &Subject) -> Done {
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

pub(super) async fn ready_instances_are_not_listed(subject: &Subject) -> Done {
    let before = works("list", subject.provider.list().await)?;
    works(
        "keep one ready",
        subject.provider.keep_ready(&[one_ready()]).await,
    )?;
    let held = ready_one_is_used(subject, before.len()).await;
    works("keep none ready", subject.provider.keep_ready(&[]).await)?;
    held
}

async fn ready_one_is_used(subject: &Subject, before: usize) -> Done {
    let listed = works("list", subject.provider.list().await)?;
    same("listed with one ready", listed.len(), before)?;
    let mut spec = subject.spec();
    spec.limits = subject.provider.info().default_limits.clone();
    let made = works("create", subject.provider.create(&spec).await)?;
    same("sandbox", made.sandbox_id.as_ref(), Some(&spec.sandbox_id))?;
    match subject.sh(&made.id, "echo $WHO").await {
        Err(Trouble::CannotBeTried) => Ok(()),
        said => same("its own variables", said?.as_str(), "conformance"),
    }
}

fn one_ready() -> Ready {
    Ready {
        template: None,
        count: 1,
    }
}
