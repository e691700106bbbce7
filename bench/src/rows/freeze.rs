//! Pause and resume.

use anyhow::Result;

use super::{Subjects, in_turns, lasting, median_row, timed, with_live};
use crate::plan::Plan;
use crate::report::Row;

/// Measures pause and resume of a sandbox, and a command that finds it paused.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let subjects = lasting(subjects);
    let [pause, resume, wake] = with_live(&subjects, |ids| {
        in_turns(plan, &subjects, |index, subject| {
            let id = &ids[index];
            let ((), pause) = timed(|| subject.pause(id))?;
            let ((), resume) = timed(|| subject.resume(id))?;
            subject.pause(id)?;
            let ((), wake) = timed(|| subject.wake(id))?;
            Ok([pause, resume, wake])
        })
    })?;
    Ok(vec![
        median_row("pause_p50", "pause", Some(3.0), &pause),
        median_row("resume_p50", "resume", Some(3.0), &resume),
        median_row("wake_p50", "paused → `true` ran", None, &wake),
    ])
}
