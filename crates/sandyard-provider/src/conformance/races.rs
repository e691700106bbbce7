//! Calls at the same time, and calls whose answer nobody got.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::subject::{Done, Subject, same, works};
use crate::ProviderErrorKind::Conflict;

pub(super) async fn deleting_from_several_sides_leaves_nothing(subject: &Subject) -> Done {
    let provider = &subject.provider;
    let made = subject.create().await?;
    let (a, b, c) = tokio::join!(
        provider.delete(&made.id),
        provider.delete(&made.id),
        provider.delete(&made.id)
    );
    let answers = [a, b, c];
    same(
        "one of them did it",
        answers.iter().any(Result::is_ok),
        true,
    )?;
    for answer in answers {
        match answer {
            // Somebody else is at it.
            Err(error) if error.kind == Conflict => {}
            other => works("delete", other)?,
        }
    }
    works("delete once more", provider.delete(&made.id).await)?;
    let found = works("inspect", provider.inspect(&made.id).await)?;
    same("inspect", found, None)
}

pub(super) async fn looking_while_some_are_made_finds_each_once_it_is(subject: &Subject) -> Done {
    let provider = &subject.provider;
    let specs = [subject.spec(), subject.spec(), subject.spec()];
    let is_over = AtomicBool::new(false);
    let make = async {
        let [a, b, c] = &specs;
        let made = tokio::join!(provider.create(a), provider.create(b), provider.create(c));
        is_over.store(true, Ordering::Relaxed);
        for made in [made.0, made.1, made.2] {
            works("create", made)?;
        }
        Ok(())
    };
    let read = async {
        while !is_over.load(Ordering::Relaxed) {
            let listed = works("list", provider.list().await)?;
            let ids: BTreeSet<_> = listed.iter().map(|one| &one.id).collect();
            same("listed once", ids.len(), listed.len())?;
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let (made, reads) = tokio::join!(make, read);
    made.and(reads)?;
    for spec in &specs {
        let found = subject.made_for(&spec.sandbox_id).await?;
        same("found by its sandbox", found.len(), 1)?;
    }
    Ok(())
}

pub(super) async fn what_is_made_again_for_a_sandbox_is_found_too(subject: &Subject) -> Done {
    // A caller that lost the first answer may call again, and must find both instances or get an error.
    let provider = &subject.provider;
    let spec = subject.spec();
    let first = works("create", provider.create(&spec).await)?;
    let mut expected = BTreeSet::from([first.id]);
    match provider.create(&spec).await {
        Err(error) if error.kind == Conflict => {}
        second => {
            let second = works("create again", second)?;
            same("another one", expected.insert(second.id), true)?;
        }
    }
    let found = subject.made_for(&spec.sandbox_id).await?;
    let found: BTreeSet<_> = found.into_iter().map(|one| one.id).collect();
    same("found by the sandbox", found, expected)
}
