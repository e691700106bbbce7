//! Concurrent calls, and calls whose answer was lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::subject::{CheckResult, Subject, holds, same, works};
use crate::ProviderErrorKind::Conflict;

pub(super) async fn concurrent_deletes_leave_nothing(subject: &Subject) -> CheckResult {
    let provider = &subject.provider;
    let made = subject.create().await?;
    let (a, b, c) = tokio::join!(
        provider.delete(&made.id),
        provider.delete(&made.id),
        provider.delete(&made.id)
    );
    let answers = [a, b, c];
    holds("one of them succeeded", answers.iter().any(Result::is_ok))?;
    for answer in answers {
        match answer {
            // Another of the calls is deleting it.
            Err(error) if error.kind == Conflict => {}
            other => works("delete", other)?,
        }
    }
    works("delete once more", provider.delete(&made.id).await)?;
    let found = works("inspect", provider.inspect(&made.id).await)?;
    same("inspect", found, None)
}

pub(super) async fn listing_during_creates_has_no_duplicates_and_misses_none(
    subject: &Subject,
) -> CheckResult {
    let provider = &subject.provider;
    let specs = [subject.spec(), subject.spec(), subject.spec()];
    let has_ended = AtomicBool::new(false);
    let make = async {
        let [a, b, c] = &specs;
        let made = tokio::join!(provider.create(a), provider.create(b), provider.create(c));
        has_ended.store(true, Ordering::Relaxed);
        for made in [made.0, made.1, made.2] {
            works("create", made)?;
        }
        Ok(())
    };
    let read = async {
        while !has_ended.load(Ordering::Relaxed) {
            let listed = works("list", provider.list().await)?;
            let ids: BTreeSet<_> = listed.iter().map(|instance| &instance.id).collect();
            same("listed once", ids.len(), listed.len())?;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let (made, reads) = tokio::join!(make, read);
    made.and(reads)?;
    for spec in &specs {
        let found = subject.instances_of(&spec.sandbox_id).await?;
        same("found by its sandbox", found.len(), 1)?;
    }
    Ok(())
}

pub(super) async fn a_second_create_for_a_sandbox_is_found_too(subject: &Subject) -> CheckResult {
    // A caller that lost the first answer may call again, and must find both instances or get an error.
    let provider = &subject.provider;
    let spec = subject.spec();
    let first = works("create", provider.create(&spec).await)?;
    let mut expected = BTreeSet::from([first.id]);
    match provider.create(&spec).await {
        Err(error) if error.kind == Conflict => {}
        second => {
            let second = works("create again", second)?;
            holds("a second instance", expected.insert(second.id))?;
        }
    }
    let found = subject.instances_of(&spec.sandbox_id).await?;
    let found: BTreeSet<_> = found.into_iter().map(|instance| instance.id).collect();
    same("found by the sandbox", found, expected)
}
