//! From nothing to the first byte of output.

use anyhow::Result;

use super::{Subjects, in_turns, median_row, tail_row};
use crate::plan::Plan;
use crate::report::Row;

/// Measures how long a user without a sandbox waits for the first output.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let [first] = in_turns(plan, subjects, |_, subject| {
        Ok([subject.first_output()?.as_secs_f64() * 1e3])
    })?;
    Ok(vec![
        median_row(
            "output_p50",
            "create → first output of `echo`",
            Some(10.0),
            &first,
        ),
        tail_row(
            "output_p99",
            "create → first output of `echo`",
            None,
            &first,
        ),
    ])
}
