//! Past usage of an instance.

use std::time::Duration;

use super::subject::{CheckError, CheckResult, Subject, fails, holds, same, works};
use crate::ProviderErrorKind::{NotFound, Unsupported};
use crate::usage::UsagePoint;

/// Bound on the wait for the first point, which takes some seconds on an idle machine.
const FIRST_POINT_TIMEOUT: Duration = Duration::from_secs(120);

/// The entire history, if the provider records one.
async fn history(subject: &Subject, id: &str) -> CheckResult<Vec<UsagePoint>> {
    match subject.provider.usage_history(id, 0, i64::MAX).await {
        Err(error) if error.kind == Unsupported => Err(CheckError::NotApplicable),
        other => works("usage history", other),
    }
}

/// Waits until there is a point.
async fn first_point(subject: &Subject, id: &str) -> CheckResult<UsagePoint> {
    let read = async {
        loop {
            if let Some(point) = history(subject, id).await?.last() {
                return Ok(*point);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let point = tokio::time::timeout(FIRST_POINT_TIMEOUT, read).await;
    point.unwrap_or_else(|_| {
        Err(CheckError::Failed(
            "no point was recorded in time".to_owned(),
        ))
    })
}

pub(super) async fn the_history_has_a_point_soon_after_a_create(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    let point = first_point(subject, &made.id).await?;
    holds(
        "the point is plausible",
        point.at_ms + 1000 >= made.created_ms,
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
    same("no points before the create", before.len(), 0)?;
    let reversed = works(
        "reversed",
        provider.usage_history(&made.id, i64::MAX, i64::MIN).await,
    )?;
    same("no points in a reversed range", reversed.len(), 0)?;
    let all = history(subject, &made.id).await?;
    holds("oldest first", all.is_sorted_by_key(|point| point.at_ms))?;
    works("delete", provider.delete(&made.id).await)?;
    fails(
        "deleted",
        NotFound,
        provider.usage_history(&made.id, 0, i64::MAX).await,
    )
}

pub(super) async fn a_pause_leaves_earlier_points_unchanged(subject: &Subject) -> CheckResult {
    let made = subject.create().await?;
    first_point(subject, &made.id).await?;
    works("pause", subject.provider.pause(&made.id).await)?;
    let before = history(subject, &made.id).await?;
    works("resume", subject.provider.resume(&made.id).await)?;
    let after = history(subject, &made.id).await?;
    holds("earlier points are unchanged", after.starts_with(&before))
}

pub(super) async fn a_missing_instance_has_no_history(subject: &Subject) -> CheckResult {
    for id in ["nosuchinstance00000", "", "../../etc"] {
        let history = subject.provider.usage_history(id, 0, i64::MAX).await;
        if matches!(&history, Err(error) if error.kind == Unsupported) {
            return Err(CheckError::NotApplicable);
        }
        fails("unknown", NotFound, history)?;
    }
    Ok(())
}
