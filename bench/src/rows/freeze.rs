//! Pause and resume.

use anyhow::Result;

use super::{Subjects, in_turns, lasting, median_row, timed, with_live};
use crate::plan::Plan;
use crate::report::Row;

/// Measures freezing and thawing of one sandbox, and that it answers a command afterwards.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects) -> Result<Vec<Row>> {
    let subjects = lasting(subjects);
    let [pause, resume, answer] = with_live(&subjects, |ids| {
        in_turns(plan, &subjects, |index, subject| {
            let id = &ids[index];
            let ((), pause) = timed(|| subject.pause(id))?;
            let ((), resume) = timed(|| subject.resume(id))?;
            let ((), exec) = timed(|| subject.exec(id))?;
            Ok([pause, resume, resume + exec])
        })
    })?;
    Ok(vec![
        median_row("pause_p50", "pause", Some(3.0), &pause),
        median_row("resume_p50", "resume", Some(3.0), &resume),
        median_row("wake_p50", "resume → `true` ran", None, &answer),
    ])
}
