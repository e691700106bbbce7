//! A large file in and out.

use anyhow::{Context as _, Result};

use super::{Subjects, lasting, with_live};
use crate::plan::Plan;
use crate::report::{Cell, Row, Unit};
use crate::stats::Samples;

/// Measures writing a file into a live sandbox and reading it back; the figure counts both ways.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let label = format!(
        "file of {} MiB written and read back",
        plan.file_bytes >> 20
    );
    let mut row = Row::new("files", label, Unit::MegabytesPerSecond, Some(500.0));
    let subjects = lasting(subjects);
    with_live(&subjects, |ids| {
        for (subject, id) in subjects.iter().zip(ids) {
            let mut samples = Samples::default();
            for round in 0..=plan.round_count {
                let elapsed = subject.file_round_trip(id, plan.file_bytes);
                let Some(elapsed) =
                    elapsed.with_context(|| format!("{:?} failed", subject.column()))?
                else {
                    break;
                };
                // The first one warms up.
                if round > 0 {
                    samples.push_round(vec![
                        2.0 * plan.file_bytes as f64 / 1e6 / elapsed.as_secs_f64(),
                    ]);
                }
            }
            if let Some(value) = samples.percentile(50.0) {
                row.cells.insert(
                    subject.column(),
                    Cell {
                        value,
                        batch: 1,
                        samples: samples.count(),
                        spread: samples.spread(),
                    },
                );
            }
        }
        Ok(())
    })?;
    Ok(vec![row])
}
