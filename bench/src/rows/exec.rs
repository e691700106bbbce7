//! A command in a live sandbox.

use anyhow::Result;

use super::{Subjects, in_turns, lasting, median_row, tail_row, timed, with_live};
use crate::plan::Plan;
use crate::report::Row;

/// Measures `true` from request to exit code.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let subjects = lasting(subjects);
    let [exec] = with_live(&subjects, |ids| {
        in_turns(plan, &subjects, |index, subject| {
            Ok([timed(|| subject.exec(&ids[index]))?.1])
        })
    })?;
    Ok(vec![
        median_row("exec_p50", "run `true` in a live sandbox", Some(3.0), &exec),
        tail_row("exec_p99", "run `true` in a live sandbox", None, &exec),
    ])
}
