//! What is measured: one file per group of rows.
//!
//! - [`start`]: create, delete, and both around one command
//! - [`output`]: from nothing to the first byte of output
//! - [`exec`]: a command in a live sandbox
//! - [`freeze`]: pause and resume
//! - [`pool`]: create where ready sandboxes are kept
//! - [`burst`]: many at once
//! - [`crowd`]: many live, what they cost, and a restart of what manages them
//! - [`files`]: a large file in and out
//! - [`egress`]: the cost of the egress gateway
//! - [`tools`]: the tool server of a sandbox
//! - [`sdk`]: from nothing to the first output, through an official SDK
//!
//! The same rows are measured in both sections; only who is asked differs. [`group`] names them.

mod burst;
mod crowd;
mod egress;
mod exec;
mod files;
mod freeze;
pub(crate) mod group;
mod output;
mod pool;
mod sdk;
mod start;
mod tools;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::plan::Plan;
use crate::report::{Cell, Column, Row, Unit};
use crate::stats::Samples;
use crate::subject::{Live, Subject};

/// Subjects to measure.
pub(crate) type Subjects<'a> = [&'a dyn Subject];

/// Keeps the samples of one figure for each subject.
type Figures = BTreeMap<Column, Samples>;

/// Samples `subjects` in rounds, one subject after another in each. A sample is `K` figures in milliseconds.
///
/// The first two samples of each subject are thrown away: caches fill, connections open.
fn in_turns<S: Subject + ?Sized, const K: usize>(
    plan: &Plan,
    subjects: &[&S],
    sample: impl Fn(usize, &S) -> Result<[f64; K]>,
) -> Result<[Figures; K]> {
    let named = |index: usize, subject: &S| {
        sample(index, subject).with_context(|| format!("{:?} failed", subject.column()))
    };
    for (index, subject) in subjects.iter().enumerate() {
        for _ in 0..2 {
            named(index, subject)?;
        }
    }
    let mut figures: [Figures; K] = std::array::from_fn(|_| Figures::new());
    for _ in 0..plan.round_count {
        for (index, subject) in subjects.iter().enumerate() {
            let count = subject.samples(plan.samples).div_ceil(plan.round_count);
            let round: Vec<[f64; K]> = (0..count)
                .map(|_| named(index, subject))
                .collect::<Result<_>>()?;
            for (position, figure) in figures.iter_mut().enumerate() {
                let column = round.iter().map(|sample| sample[position]).collect();
                figure
                    .entry(subject.column())
                    .or_default()
                    .push_round(column);
            }
        }
    }
    Ok(figures)
}

/// Fills `row` with the `percent`th percentile of each subject.
fn with_percentile(mut row: Row, figures: &Figures, percent: f64) -> Row {
    for (column, samples) in figures {
        if let Some(value) = samples.percentile(percent) {
            // The spread is one of medians and would say nothing about a tail.
            let spread = samples.spread().filter(|_| percent == 50.0);
            row.cells.insert(
                *column,
                Cell {
                    value,
                    batch: 1,
                    samples: samples.count(),
                    spread,
                },
            );
        }
    }
    row
}

/// Makes the row of medians of a figure in milliseconds.
fn median_row(id: &'static str, label: &str, goal: Option<f64>, figures: &Figures) -> Row {
    with_percentile(
        Row::new(id, format!("{label}, p50"), Unit::Millis, goal),
        figures,
        50.0,
    )
}

/// Makes the row of 99th percentiles of a figure in milliseconds.
fn tail_row(id: &'static str, label: &str, goal: Option<f64>, figures: &Figures) -> Row {
    with_percentile(
        Row::new(id, format!("{label}, p99"), Unit::Millis, goal),
        figures,
        99.0,
    )
}

/// Runs `work` and gives its result with the milliseconds it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed().as_secs_f64() * 1e3))
}

/// Returns the subjects that have sandboxes that stay.
fn lasting<'a>(subjects: &Subjects<'a>) -> Vec<&'a dyn Live> {
    subjects
        .iter()
        .filter_map(|subject| subject.live())
        .collect()
}

/// Returns `work` one live sandbox of each of `subjects`, by position, and deletes them whatever comes of it.
fn with_live<T>(subjects: &[&dyn Live], work: impl FnOnce(&[String]) -> Result<T>) -> Result<T> {
    let mut ids = Vec::new();
    let result = subjects
        .iter()
        .try_for_each(|subject| subject.create().map(|id| ids.push(id)))
        .and_then(|()| work(&ids));
    let deleted = subjects
        .iter()
        .zip(&ids)
        .map(|(subject, id)| subject.delete(id))
        .collect::<Vec<_>>();
    let result = result?;
    deleted.into_iter().collect::<Result<()>>()?;
    Ok(result)
}
