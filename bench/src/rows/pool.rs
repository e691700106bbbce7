//! Create where ready sandboxes are kept.

use anyhow::Result;

use super::{Figures, Subjects, lasting, median_row, tail_row, timed};
use crate::plan::Plan;
use crate::report::Row;
use crate::stats::Samples;
use crate::subject::Live;

/// Size of the pool where it can be chosen. A round takes all sandboxes and lets the pool fill up again.
const READY: usize = 20;

/// Most rounds: a small pool needs many, and each waits for it to fill up.
const MAX_ROUNDS: usize = 20;

/// Measures creates that find a ready sandbox, for subjects with a pool.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let mut figures = Figures::new();
    for subject in lasting(subjects) {
        let samples = sample_rounds(plan, subject);
        subject.keep_ready(0)?;
        if let Some(samples) = samples? {
            figures.insert(subject.column(), samples);
        }
    }
    Ok(vec![
        median_row(
            "pool_p50",
            "create from a pool of ready ones",
            None,
            &figures,
        ),
        tail_row(
            "pool_p99",
            "create from a pool of ready ones",
            None,
            &figures,
        ),
    ])
}

fn sample_rounds(plan: &Plan, subject: &dyn Live) -> Result<Option<Samples>> {
    let mut samples = Samples::default();
    for round in 0..=MAX_ROUNDS {
        let ready = subject.keep_ready(READY)?;
        if ready == 0 {
            return Ok(None);
        }
        if round > plan.samples.div_ceil(ready) {
            break;
        }
        let (mut ids, mut millis) = (Vec::new(), Vec::new());
        for _ in 0..ready {
            let (id, elapsed) = timed(|| subject.create())?;
            ids.push(id);
            millis.push(elapsed);
        }
        subject.delete_many(&ids)?;
        // The first round warms up.
        if round > 0 {
            samples.push_round(millis);
        }
    }
    Ok(Some(samples))
}
