//! Many at once.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::Subjects;
use crate::plan::Plan;
use crate::report::{Cell, Row, Unit};
use crate::stats::Samples;

/// Measures the wall time until all of a burst have run a command; the median of as many bursts as there are rounds.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let mut walls: BTreeMap<_, (usize, Samples)> = BTreeMap::new();
    for round in 0..=plan.round_count {
        for subject in subjects {
            let count = subject.burst_size(plan.burst);
            let wall = subject
                .burst(count)
                .with_context(|| format!("{:?} failed", subject.column()))?;
            // The first burst warms up.
            if round > 0 {
                let (_, samples) = walls
                    .entry(subject.column())
                    .or_insert_with(|| (count, Samples::default()));
                samples.push_round(vec![wall.as_secs_f64() * 1e3]);
            }
        }
    }
    let label = format!("{} creates at once, all ran `true`: wall", plan.burst);
    let mut row = Row::new(
        "burst_wall",
        label,
        Unit::Millis,
        (!plan.quick).then_some(500.0),
    );
    for (column, (batch, samples)) in walls {
        if let Some(value) = samples.percentile(50.0) {
            row.cells.insert(
                column,
                Cell {
                    value,
                    batch,
                    samples: samples.count(),
                    spread: samples.spread(),
                },
            );
        }
    }
    Ok(vec![row])
}
