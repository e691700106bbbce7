//! Looking: while something changes, at what is not there, at what is not ours.

use std::sync::atomic::{AtomicBool, Ordering};

use super::subject::{Done, Subject, fails, same, works};
use crate::ProviderErrorKind::{self, NotFound};
use crate::Result;

/// How often it is paused and resumed while others look.
const REPEATS: usize = 10;

pub(super) async fn an_unknown_id_is_not_found(subject: &Subject) -> Done {
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
        let kept = provider.snapshot(id, &name).await;
        absent("snapshot", can.can_snapshot, kept)?;
        absent("fork", can.can_fork, provider.fork(id, &spec).await)?;
        absent("diff", can.can_diff, provider.diff(id).await)?;
    }
    same("left", subject.made_for(&spec.sandbox_id).await?, vec![])
}

fn absent<T: std::fmt::Debug>(call: &str, is_able: bool, result: Result<T>) -> Done {
    let kind = match is_able {
        true => NotFound,
        false => ProviderErrorKind::Unsupported,
    };
    fails(call, kind, result)
}

pub(super) async fn instances_of_others_are_not_listed(subject: &Subject) -> Done {
    let listed = works("list", subject.provider.list().await)?;
    for id in &subject.options.foreign_instances {
        let is_listed = listed.iter().any(|one| one.id == *id);
        same(
            "another installation's instance is listed",
            is_listed,
            false,
        )?;
        let found = works("inspect", subject.provider.inspect(id).await)?;
        same("inspect of another installation's instance", found, None)?;
    }
    Ok(())
}

pub(super) async fn reading_while_it_pauses_always_finds_it(subject: &Subject) -> Done {
    let made = subject.create().await?;
    let is_over = AtomicBool::new(false);
    let change = async {
        let mut done = Ok(());
        for _ in 0..REPEATS {
            let paused = works("pause", subject.provider.pause(&made.id).await);
            let resumed = works("resume", subject.provider.resume(&made.id).await);
            done = done.and(paused.map(drop)).and(resumed.map(drop));
            tokio::task::yield_now().await;
        }
        is_over.store(true, Ordering::Relaxed);
        done
    };
    let read = async {
        while !is_over.load(Ordering::Relaxed) {
            let found = subject.inspect(&made.id).await?;
            same("live", found.state.is_live(), true)?;
            let sandbox_id = made.sandbox_id.as_ref().expect("made for one");
            let listed = subject.made_for(sandbox_id).await?;
            same("listed", listed.len(), 1)?;
            works("usage", subject.provider.usage(&made.id).await)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let (changed, reads) = tokio::join!(change, read);
    changed.and(reads)
}

pub(super) async fn usage_is_reported_in_every_state(subject: &Subject) -> Done {
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
