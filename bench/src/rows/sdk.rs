//! Through an SDK, as users do: from nothing to the output of the first command.
//!
//! Independent leaderboards of sandbox services measure this ("time to interactive"): one after another, and a hundred
//! at once.

use anyhow::Result;

use super::{Figures, Subjects, with_percentile};
use crate::plan::Plan;
use crate::report::{Cell, Row, Unit};
use crate::subject::SdkOrder;

/// One after another and all at once, each with percentiles and success rate.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let one_by_one = [("sdk_p50", 50.0), ("sdk_p95", 95.0), ("sdk_p99", 99.0)];
    let at_once = [
        ("sdk_burst_p50", 50.0),
        ("sdk_burst_p95", 95.0),
        ("sdk_burst_p99", 99.0),
    ];
    let mut rows = rows(plan, subjects, SdkOrder::OneByOne, one_by_one, "sdk_worked")?;
    rows.extend(self::rows(
        plan,
        subjects,
        SdkOrder::AtOnce,
        at_once,
        "sdk_burst_worked",
    )?);
    Ok(rows)
}

fn rows(
    plan: &Plan,
    subjects: &Subjects<'_>,
    order: SdkOrder,
    ids: [(&'static str, f64); 3],
    worked_id: &'static str,
) -> Result<Vec<Row>> {
    let count = plan.burst;
    let label = match order {
        SdkOrder::OneByOne => "SDK: create → first output".to_owned(),
        SdkOrder::AtOnce => format!("SDK: the same, {count} at once"),
    };
    let mut figures = Figures::new();
    let mut worked = Row::new(
        worked_id,
        format!("{label}: that worked"),
        Unit::Count,
        Some(count as f64),
    );
    for subject in subjects {
        let sample_count = match order {
            SdkOrder::OneByOne => subject.samples(count),
            SdkOrder::AtOnce => subject.burst_size(count),
        };
        let Some(run) = subject.with_sdk(order, sample_count)? else {
            continue;
        };
        let cell = Cell {
            value: run.millis.len() as f64,
            batch: sample_count,
            samples: sample_count,
            spread: None,
        };
        worked.cells.insert(subject.column(), cell);
        let samples = figures.entry(subject.column()).or_default();
        samples.push_round(run.millis);
    }
    let mut rows: Vec<Row> = ids
        .into_iter()
        .map(|(id, percent)| {
            let goal = (id == "sdk_p50").then_some(25.0);
            let row = Row::new(id, format!("{label}, p{percent}"), Unit::Millis, goal);
            with_percentile(row, &figures, percent)
        })
        .collect();
    rows.push(worked);
    Ok(rows)
}
