//! Past usage of an instance.

use std::time::Duration;

use super::subject::{Done, Subject, Trouble, fails, same, works};
use crate::ProviderErrorKind::{NotFound, Unsupported};
use crate::usage::UsagePoint;

/// A point is there some seconds after a create, on a machine that has nothing else to do.
const SOON: Duration = Duration::from_secs(120);

/// The whole history, where one is kept.
async fn history(subject: &Subject, id: &str) -> Done<Vec<UsagePoint>> {
    match subject.provider.usage_history(id, 0, i64::MAX).await {
        Err(error) if error.kind == Unsupported => Err(Trouble::CannotBeTried),
        other => works("usage history", other),
    }
}

/// Waits until there is a point.
async fn first_point(subject: &Subject, id: &str) -> Done<UsagePoint> {
    let read = async {
        loop {
            if let Some(point) = history(subject, id).await?.last() {
                return Ok(*point);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(SOON, read).await;
    found.unwrap_or_else(|_| Err(Trouble::Wrong("there is no point yet".to_owned())))
}

pub(super) async fn there_is_a_point_soon_after_a_create(subject: &Subject) -> Done {
    let made = subject.create().await?;
    let point = first_point(subject, &made.id).await?;
    same(
        "the point is plausible",
        point.at_ms + 1000 >= made.created_ms,
        true,
    )?;
    let provider = &subject.provider;
    let at = point.at_ms;
    let exact = works("one point", provider.usage_history(&made.id, at, at).await)?;
    same("both ends are included", exact.first(), Some(&point))?;
    let before = works(
        "before",
        provider
            .usage_history(&made.id, 0, made.created_ms - 60_000)
            .await,
    )?;
    same("nothing before it was made", before.len(), 0)?;
    let reversed = works(
        "reversed",
        provider.usage_history(&made.id, i64::MAX, i64::MIN).await,
    )?;
    same(
        "nothing between the end and the beginning",
        reversed.len(),
        0,
    )?;
    let all = history(subject, &made.id).await?;
    same(
        "oldest first",
        all.is_sorted_by_key(|point| point.at_ms),
        true,
    )?;
    works("delete", provider.delete(&made.id).await)?;
    fails(
        "deleted",
        NotFound,
        provider.usage_history(&made.id, 0, i64::MAX).await,
    )
}

pub(super) async fn nothing_is_counted_while_it_is_paused(subject: &Subject) -> Done {
    let made = subject.create().await?;
    first_point(subject, &made.id).await?;
    works("pause", subject.provider.pause(&made.id).await)?;
    let before = history(subject, &made.id).await?;
    works("resume", subject.provider.resume(&made.id).await)?;
    let after = history(subject, &made.id).await?;
    same("the past stays", after.starts_with(&before), true)
}

pub(super) async fn what_is_not_there_has_no_history(subject: &Subject) -> Done {
    for id in ["nosuchinstance00000", "", "../../etc"] {
        let history = subject.provider.usage_history(id, 0, i64::MAX).await;
        if matches!(&history, Err(error) if error.kind == Unsupported) {
            return Err(Trouble::CannotBeTried);
        }
        fails("unknown", NotFound, history)?;
    }
    Ok(())
}
