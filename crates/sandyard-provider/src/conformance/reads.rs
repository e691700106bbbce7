//! Reads: during a change, of missing instances, of foreign instances.

use std::sync::atomic::{AtomicBool, Ordering};

use super::subject::{CheckResult, Subject, fails, holds, same, works};
use crate::ProviderErrorKind::{self, NotFound};
use crate::Result;

/// How often the instance is paused and resumed while it is read.
const REPEATS: usize = 10;

pub(super) async fn an_unknown_id_is_not_found(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let can = provider.info().capabilities;
    let spec = subject.spec();
    let (long, huge) = ("a".repeat(5000), "a".repeat(1 << 20));
    let hostile = [
        "",
        "..",
        "../x",
        "A-b",
        "a\0b",
        "a\nb: c",
        "a?b=c#d",
        "%2e%2e%2fx",
    ];
    for id in hostile.into_iter().chain(["nosuchinstance", &long, &huge]) {
        let found = works("inspect", provider.inspect(id).await)?;
        same("inspect", found, None)?;
        works("delete", provider.delete(id).await)?;
        fails("usage", NotFound, provider.usage(id).await)?;
        absent("pause", can.can_pause, provider.pause(id).await)?;
        absent("resume", can.can_pause, provider.resume(id).await)?;
        absent("stop", can.can_stop, provider.stop(id).await)?;
        absent("start", can.can_stop, provider.start(id).await)?;
        let name = subject.template_name();
        let snapshot = provider.snapshot(id, &name).await;
        absent("snapshot", can.can_snapshot, snapshot)?;
        absent("fork", can.can_fork, provider.fork(id, &spec).await)?;
        absent("diff", can.can_diff, provider.diff(id).await)?;
    }
    subject.lists(&spec.sandbox_id, &[]).await
}

fn absent<T: std::fmt::Debug>(call: &str, is_able: bool, result: Result<T>) -> CheckResult {
    let kind = match is_able {
        true => NotFound,
        false => ProviderErrorKind::Unsupported,
    };
    fails(call, kind, result)
}

pub(super) async fn foreign_instances_are_not_listed(subject: &Subject) -> CheckResult {
    let listed = works("list", subject.provider.list().await)?;
    for id in &subject.options.foreign_instances {
        let is_listed = listed.iter().any(|instance| instance.id == *id);
        holds("another installation's instance is not listed", !is_listed)?;
        let found = works("inspect", subject.provider.inspect(id).await)?;
        same("inspect of another installation's instance", found, None)?;
    }
    Ok(())
}

pub(super) async fn reads_find_an_instance_while_it_is_paused_and_resumed(
    subject: &Subject,
) -> CheckResult {
    let created = subject.create().await?;
    let has_ended = AtomicBool::new(false);
    let change = async {
        let mut done = Ok(());
        for _ in 0..REPEATS {
            let paused = works("pause", subject.provider.pause(&created.id).await);
            let resumed = works("resume", subject.provider.resume(&created.id).await);
            done = done.and(paused.map(drop)).and(resumed.map(drop));
            tokio::task::yield_now().await;
        }
        has_ended.store(true, Ordering::Relaxed);
        done
    };
    let read = async {
        while !has_ended.load(Ordering::Relaxed) {
            let found = subject.inspect(&created.id).await?;
            holds("live", found.state.is_live())?;
            let sandbox_id = created.sandbox_id.as_ref().expect("made for one");
            let listed = subject.instances_of(sandbox_id).await?;
            same("listed", listed.len(), 1)?;
            works("usage", subject.provider.usage(&created.id).await)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let (changed, reads) = tokio::join!(change, read);
    changed.and(reads)
}

pub(super) async fn usage_is_reported_in_every_state(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let id = subject.create().await?.id;
    works("usage while it runs", provider.usage(&id).await)?;
    if provider.info().capabilities.can_pause {
        works("pause", provider.pause(&id).await)?;
        works("usage while paused", provider.usage(&id).await)?;
    }
    if provider.info().capabilities.can_stop {
        works("stop", provider.stop(&id).await)?;
        works("usage while stopped", provider.usage(&id).await)?;
    }
    Ok(())
}
