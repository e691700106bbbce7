//! Many live sandboxes: their cost, and a restart of their manager.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Subjects, lasting, timed};
use crate::memory;
use crate::plan::Plan;
use crate::report::{Cell, Row, Unit};
use crate::stats::Samples;
use crate::subject::{Live, Restart};

/// Measures a crowd of each subject that can have one, one crowd after another.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let mut rows = empty_rows(plan.crowd);
    for subject in lasting(subjects) {
        let Some(count) = subject.crowd_size(plan.crowd) else {
            continue;
        };
        let figures = crowd(plan, subject, count)
            .with_context(|| format!("{:?} failed with a crowd", subject.column()))?;
        for (row, value) in rows.iter_mut().zip(figures) {
            if let Some(value) = value {
                row.cells
                    .insert(subject.column(), cell(row.id, value, count));
            }
        }
    }
    Ok(rows)
}

/// Names the rows in the order in which [`crowd`] gives its figures.
fn empty_rows(count: usize) -> Vec<Row> {
    let row =
        |id, label: &str, unit, goal| Row::new(id, format!("{count} live: {label}"), unit, goal);
    vec![
        row(
            "crowd_create",
            "wall to create, a burst at a time",
            Unit::Millis,
            None,
        ),
        row("crowd_answer", "answer", Unit::Count, Some(count as f64)),
        row(
            "crowd_pss",
            "memory each, PSS with agent",
            Unit::Mebibytes,
            Some(2.0),
        ),
        row(
            "crowd_available",
            "memory each, taken from the host's MemAvailable",
            Unit::Mebibytes,
            None,
        ),
        row(
            "crowd_manager",
            "memory of what manages them, RSS",
            Unit::Mebibytes,
            None,
        ),
        row(
            "crowd_exec_p50",
            "run `true` in any, p50",
            Unit::Millis,
            None,
        ),
        row(
            "crowd_exec_p99",
            "run `true` in any, p99",
            Unit::Millis,
            Some(50.0),
        ),
        row(
            "crowd_status_p50",
            "ask where one stands, p50",
            Unit::Millis,
            None,
        ),
        row(
            "crowd_status_p99",
            "ask where one stands, p99",
            Unit::Millis,
            Some(50.0),
        ),
        row(
            "crowd_back",
            "manager killed → a new one answers",
            Unit::Millis,
            None,
        ),
        row(
            "crowd_some",
            "manager killed → all listed, `true` ran in 20 of them",
            Unit::Millis,
            Some(2000.0),
        ),
        row(
            "crowd_adopt",
            "manager killed → `true` ran in all",
            Unit::Millis,
            Some(2000.0),
        ),
        row("crowd_delete", "wall to delete all", Unit::Millis, None),
    ]
}

fn cell(id: &str, value: f64, count: usize) -> Cell {
    // Wall times and counts cover the whole crowd; other figures are per sandbox.
    let is_whole = matches!(
        id,
        "crowd_create"
            | "crowd_answer"
            | "crowd_manager"
            | "crowd_back"
            | "crowd_some"
            | "crowd_adopt"
            | "crowd_delete"
    );
    Cell {
        value,
        batch: if is_whole { count } else { 1 },
        samples: 1,
        spread: None,
    }
}

fn crowd(plan: &Plan, subject: &dyn Live, count: usize) -> Result<Vec<Option<f64>>> {
    let before = memory::available_bytes()?;
    let mut ids = Vec::with_capacity(count);
    let result = fill(plan, subject, count, &mut ids)
        .and_then(|create| living(plan, subject, &ids, before, create));
    let deleted = timed(|| subject.delete_many(&ids));
    let mut figures = result?;
    figures.push(Some(deleted?.1));
    Ok(figures)
}

fn fill(plan: &Plan, subject: &dyn Live, count: usize, ids: &mut Vec<String>) -> Result<f64> {
    let ((), wall) = timed(|| {
        while ids.len() < count {
            ids.extend(subject.create_many(plan.burst.min(count - ids.len()))?);
        }
        Ok(())
    })?;
    Ok(wall)
}

fn living(
    plan: &Plan,
    subject: &dyn Live,
    ids: &[String],
    before: u64,
    create: f64,
) -> Result<Vec<Option<f64>>> {
    let count = ids.len() as f64;
    let answered = subject.exec_all(ids)?;
    // `None` if other programs on the host released more memory than the crowd used.
    let taken = before.checked_sub(memory::available_bytes()?);
    let roots: Vec<Vec<u32>> = ids
        .iter()
        .map(|id| subject.processes(id))
        .collect::<Result<_>>()?;
    let roots = roots.concat();
    let pss = memory::pss_of_trees(&roots)?;
    let execs = here_and_there(plan, subject, ids, |subject, id| subject.exec(id))?;
    let statuses = here_and_there(plan, subject, ids, |subject, id| subject.status(id))?;
    // Measured after the work, so that memory kept because of it is counted.
    let manager = memory::rss(&subject.managers()?)?;
    let restart = subject.restart(ids)?;
    let since_kill = |part: fn(&Restart) -> Duration| {
        restart
            .as_ref()
            .map(|restart| part(restart).as_secs_f64() * 1e3)
    };
    let mebibytes = |bytes: u64| Some(bytes as f64 / count / 1_048_576.0);
    Ok(vec![
        Some(create),
        Some(answered as f64),
        mebibytes(pss).filter(|_| !roots.is_empty()),
        taken.and_then(mebibytes),
        (manager > 0).then_some(manager as f64 / 1_048_576.0),
        execs.percentile(50.0),
        execs.percentile(99.0),
        statuses.percentile(50.0),
        statuses.percentile(99.0),
        since_kill(|restart| restart.back),
        since_kill(|restart| restart.some_ran),
        since_kill(|restart| restart.all_ran),
    ])
}

/// Visits the crowd in strides, so that no two requests in a row meet the same sandbox.
fn here_and_there(
    plan: &Plan,
    subject: &dyn Live,
    ids: &[String],
    ask: fn(&dyn Live, &str) -> Result<()>,
) -> Result<Samples> {
    let samples: Vec<f64> = (0..subject.samples(plan.samples))
        .map(|index| Ok(timed(|| ask(subject, &ids[index * 7 % ids.len()]))?.1))
        .collect::<Result<_>>()?;
    let mut all = Samples::default();
    all.push_round(samples);
    Ok(all)
}
