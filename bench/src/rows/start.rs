//! Create, delete, and both around one command.

use anyhow::Result;

use super::{Subjects, in_turns, lasting, median_row, tail_row, timed};
use crate::plan::Plan;
use crate::report::Row;

/// Measures one sandbox after another.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let [create, delete] = in_turns(plan, &lasting(subjects), |_, subject| {
        let (id, create) = timed(|| subject.create())?;
        let ((), delete) = timed(|| subject.delete(&id))?;
        Ok([create, delete])
    })?;
    let [whole] = in_turns(plan, subjects, |_, subject| {
        Ok([timed(|| subject.one_shot())?.1])
    })?;
    Ok(vec![
        median_row("start_p50", "create alone", Some(5.0), &create),
        tail_row("start_p99", "create alone", Some(15.0), &create),
        median_row("delete_p50", "delete", None, &delete),
        median_row("one_shot_p50", "create, run `true`, delete", None, &whole),
        tail_row("one_shot_p99", "create, run `true`, delete", None, &whole),
    ])
}
